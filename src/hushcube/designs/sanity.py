"""Which sanity bound every table of a workload has."""

from __future__ import annotations

import math

import numpy as np

from hushcube.designs.refinement import Amount, SanityBound
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats
from hushcube.model.workload import Workload
from hushcube.text import short


def table_bounds(bound: Amount | SanityBound, workload: Workload) -> list[Floats]:
    """The sanity bound of every table, marginals before forms; of a matrix of queries one for each of them.

    The bound has plain numbers [`settled`]. Words that name no table of the workload are refused.
    """
    if isinstance(bound, Amount):
        return [np.asarray(float(bound.value))] * len(workload)
    rest = math.nan if bound.others is None else float(bound.others.value)
    marginals = {marginal: np.full((), rest) for marginal in workload.marginals}
    forms = {form.word: np.full(len(form.rows) if form is workload.queries else (), rest) for form in workload.forms}
    rows = () if workload.queries is None else workload.queries.rows.labels
    for word, amount in bound.own:
        value, named = float(amount.value), workload.tables_of(word)
        if word in rows:
            forms["queries"][rows.index(word)] = value
        elif (form := workload.form(word)) is not None:
            forms[form.word][...] = value
        elif named:
            marginals |= dict.fromkeys(named, np.full((), value))
        else:
            known = [*map(workload.schema.describe, marginals), *rows, *(set(forms) - {"queries"})]
            fix = f"name tables of the workload, such as {', '.join(known[:5])}, or queries by their names"
            raise BadInput("sanity_bound", f"{short(word)} names something that is not asked for", fix)
    tables = zip(map(workload.schema.describe, marginals), marginals.values(), strict=True)
    free = next((name for name, value in (*tables, *forms.items()) if np.isnan(value).any()), None)
    if free is not None:
        fix = f"add a number for all others: `20;{bound}`"
        raise BadInput("sanity_bound", f"says nothing of {short(free)}", fix)
    return [*marginals.values(), *forms.values()]
