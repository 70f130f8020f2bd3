"""The face of a measurement: what a run knows goes to the maker, and what its last look saw stands beside the tables.

Of tables at several levels, the face is that of the fine tables, summed up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from hushcube.designs import SelectedDesign, SelectedLevels
from hushcube.designs.answers import Answers
from hushcube.designs.design import Design
from hushcube.designs.selective.design import earlier_of
from hushcube.faces.cell_errors import CellErrors
from hushcube.faces.checking import check_face
from hushcube.faces.maker import MAKERS, Face, FaceMaker
from hushcube.faces.value import FaceValue
from hushcube.model.arrays import Floats, position_rows
from hushcube.model.facts import Facts
from hushcube.model.noise import Measurement
from hushcube.progress import Clock

_LISTED: Final = 1_000  # the most tables whose measured errors a report lists


def make_face(design: Design, measurement: Measurement, value: FaceValue, clock: Clock) -> Face:
    """The face of a measurement that was asked for. Pure post-processing: it costs no budget."""
    check_face(design, value, clock)
    if isinstance(design, SelectedLevels):
        fine, seen = make_face(*design.averaged(measurement), value, clock), design.finest
        people = None if fine.people is None else seen.codes(fine.people)
        return Face(value, seen.answers(fine.tables), fine.report, people)
    known = design.misfit_shares(measurement) if isinstance(design, SelectedDesign) else None
    maker = FaceMaker(*design.averaged(measurement), value, clock, known)
    if isinstance(design, SelectedDesign) and design.earlier is not None:
        maker.earlier, maker.second = design.earlier, design.misfit_shares(measurement, second=True)
    elif value.edition is not None:
        maker.earlier = earlier_of(value.edition, design.schema.sizes)
    face = MAKERS[value.kind](maker)
    if isinstance(design, SelectedDesign) and maker.fitted is not None:
        checked = design.checked(measurement)
        face.report["measured_errors"] = _measured_errors(design, *checked, maker.fitted, face.tables)
        if value.rows is None:  # other numbers of people count nobody's data
            facts = value.public_facts or Facts.none(design.schema)
            face = replace(face, errors=CellErrors.of(design, measurement, face.tables, facts))
    return face


def _measured_errors(
    design: SelectedDesign, misfits: Floats, margin: float, fitted: Answers, tables: Answers
) -> dict[str, Any]:
    """How far tables are from the true ones, as sums of absolute differences over their cells, in people.

    The last look of a run saw how far the fit is, with noise; the tables are at most as much farther as they are from
    the fit.
    """
    family, schema = design.request.marginals, design.schema
    away = np.zeros(len(family))
    for batch in family.batches:
        apart = tables.tables(batch.rows, batch.shape) - fitted.tables(batch.rows, batch.shape)
        away[batch.ids] = np.abs(apart).reshape(len(apart), -1).sum(axis=1)
    people = max(float(fitted.tables(position_rows(()), ()).reshape(-1)[0]), 1.0)
    most = np.maximum(misfits + margin, 0.0) + away
    told = {"mean_share": float(np.maximum(misfits, 0.0).mean() / people), "margin": margin}
    if len(family) > _LISTED:
        return told
    pairs = zip(family, misfits.tolist(), most.tolist(), strict=True)
    return {**told, "tables": {schema.describe(m): {"seen": seen, "at_most": top} for m, seen, top in pairs}}
