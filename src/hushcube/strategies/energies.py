"""T = sum_q a_q q q^T over all answers q of a workload, as rows over one table's cells: the error is tr(T Cov(x))."""

from __future__ import annotations

import numpy as np

from hushcube.designs.matrix.errors import agreement, agreement_masks
from hushcube.designs.matrix.matching import positions
from hushcube.designs.request import Request
from hushcube.model.arrays import Floats
from hushcube.model.form import Form, QueryTable, RangeTable
from hushcube.model.marginal import Marginal


def energies(request: Request, carrier: Marginal) -> Floats:
    """T over the carrier's cells: two cells share the marginals on whose attributes they agree."""
    schema, workload = request.schema, request.workload
    alike = agreement_masks(schema, carrier)
    shared = np.zeros(1 << sum(schema.sizes[i] > 1 for i in carrier))
    for A, weight in zip(workload.marginals, workload.weights, strict=True):
        shared[agreement(schema, carrier, A)] += weight
    for bit in range(len(shared).bit_length() - 1):  # agreeing on more is agreeing on less
        pairs = shared.reshape(-1, 2, 1 << bit)
        pairs[:, 1] += pairs[:, 0]
    T = shared[alike]
    for form, weight in request.weighted_forms:
        place = positions(schema, carrier, form.marginal)
        T += weight * form_gram(form)[np.ix_(place, place)]
    return np.asarray(T)


def form_gram(form: Form) -> Floats:
    """sum_q q q^T over the answers of a form, on its carrier's cells."""
    if isinstance(form, QueryTable):
        rows = form.rows.dense()
        return np.asarray(rows.T @ rows)
    if not isinstance(form, RangeTable):
        raise TypeError(type(form).__name__)
    result = np.ones((1, 1))
    for size, (starts, ends) in zip(form.carrier_shape, form.intervals, strict=True):
        corners = np.zeros((size + 1, size + 1))  # a sum from a to b adds one to the square [a, b) x [a, b)
        for first, second, sign in ((starts, starts, 1), (ends, ends, 1), (starts, ends, -1), (ends, starts, -1)):
            np.add.at(corners, (first, second), sign)
        result = np.kron(result, corners.cumsum(axis=0).cumsum(axis=1)[:size, :size])
    return result
