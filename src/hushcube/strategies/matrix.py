"""Measure the rows of a matrix of one's own: any S over the cells of a small table.

y = R z, z = S x + noise, R S = Q                                                   [Yaroslavtsev et al. 2013, Figure 3]
s_i = sum_q a_q R_qi², summed over all answers q with their weights; the error is sum_i s_i variance_i.

    none     R picks the row that is (a multiple of) the query
    ols      R from least squares as if all rows were equally precise; s is then fixed
    gls      R given the budgets, budgets given R, in turn: each step makes the error less, and the best is kept

Budgets for a given R are optimal: in closed form where Theorem 3.4 is true of S, elsewhere by the convex program
(1)-(3). Rows that no answer needs (s_i = 0) are not measured, nor those that the alternation gives up. It is the total
error that is made least; the objective `max` only chooses among the results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from operator import itemgetter
from typing import Any, Final, Self

import numpy as np

from hushcube.costs.calibrate import Proof
from hushcube.costs.row_cost import constant_rows, cost_of_rows
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.matrix.classes import Lifted, classes_of
from hushcube.designs.matrix.design import MAX_CELLS, MatrixDesign, smoothing
from hushcube.designs.matrix.row_space import Matches, outside, row_space
from hushcube.designs.matrix.wide import WideMatrixDesign, over_classes
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.errors import BadInput, NotApplicable
from hushcube.model.arrays import Bools, Floats, Marginal
from hushcube.model.matrix_files import read_matrix
from hushcube.model.noise import law_of
from hushcube.model.queries import QueryTable, SparseRows, integer_problem, query_table
from hushcube.model.schema import Schema
from hushcube.options import option
from hushcube.strategies.row_budgets import Shares, energies, optimal
from hushcube.strategies.strategy import Strategy, best_fit

Rows = QueryTable | tuple[Sequence[str] | None, Any] | str
"""Rows over the cells of a table: its attributes (None: all) and the numbers, or the text that names a file of them."""
_MOST_NUMBERS: Final = 2**22  # of a matrix over a large table, which a plan holds as plain numbers
_LITTLE: Final = 1e-9
_MISSING: Final = "no rows are given: write `matrix:rows=FILE`"


def _read_rows(given: Any, field: str) -> Rows:
    """Whatever is known already is checked; files, and attributes by their names, need a schema."""
    if isinstance(given, QueryTable) and (problem := integer_problem(given.rows)):
        raise BadInput(field, *problem)
    if not isinstance(given, QueryTable | str) and not (isinstance(given, tuple) and len(given) == 2):
        raise BadInput(field, "is no matrix", "give the names of attributes and the rows: `rows=(names, numbers)`")
    return given


@dataclass(frozen=True, kw_only=True)
class Matrix(Strategy):
    """The user's own rows."""

    name = "matrix"
    measures = "the rows of a matrix of your own"
    makes = (MatrixDesign,)

    rows: Rows | None = option(
        None,
        "the whole-numbered rows to measure: a file as for --queries, over all attributes unless some are named",
        takes="[A*B:]FILE",
        read=_read_rows,
    )

    def on(self, schema: Schema) -> Self:
        """Reads the file."""
        if isinstance(self.rows, str):
            return replace(self, rows=read_matrix(self.rows, schema, "rows"))
        if isinstance(self.rows, tuple):
            return replace(self, rows=query_table(schema, *self.rows, field="rows"))
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """The file of the rows."""
        return (self.rows,) if isinstance(self.rows, str) else ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the rows, once they are read."""
        return tuple(a.name for a in self.rows.attributes) if isinstance(self.rows, QueryTable) else ()

    def _within(self, schema: Schema) -> QueryTable | None:
        """The rows, over the places that their attributes have in a schema."""
        rows = self.on(schema).rows
        return rows.within(schema) if isinstance(rows, QueryTable) else None

    def concerns(self, request: Request) -> bool:  # noqa: ARG002 - whatever is asked
        """Only where rows are given."""
        return self.rows is not None

    def accepts(self, request: Request) -> str | None:
        """It needs a matrix, over a small table that contains all those asked for."""
        matrix = self._within(request.schema)
        if matrix is None:
            return _MISSING
        if matrix.rows.width > MAX_TABLE_CELLS:
            return f"the matrix is over {matrix.rows.width:,} cells, more than {MAX_TABLE_CELLS:,}"
        if matrix.rows.width > MAX_CELLS and (problem := _too_wide(matrix.rows, request)):
            return problem
        for A in request.marginals:
            if not set(A) <= set(matrix.marginal):
                own = request.schema.describe(matrix.marginal)
                return f"{request.schema.describe(A)} has attributes that the matrix's table {own} lacks"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The rows that are needed, with their budgets."""
        matrix = self._within(request.schema)
        if matrix is None:
            raise NotApplicable(self.name, _MISSING)
        if matrix.rows.width > MAX_CELLS:
            return self._wide(request, matrix, budgets, recovery)
        start = _Measured.of(request, matrix.marginal, matrix.rows)
        start.check(recovery)
        if budgets == "uniform":
            measured, shares = start, Shares.uniform(start.count)
        elif recovery == "gls":
            measured, shares = _alternate(start)
        else:
            s = start.s_of_rows() if recovery == "none" else start.s_of_least_squares(np.ones(start.count))
            measured, shares = _optimal(start, s)
        details = {
            "rows": len(matrix.rows),
            "rows_measured": len(measured.rows),
            "groups": len(set(shares.group_of.tolist())),
            "budgets": shares.how,
        }
        rows, privacy = measured.rows, request.privacy
        group_of = np.full(len(rows), int(shares.group_of.max(initial=-1)) + 1)
        group_of[~measured.public] = shares.group_of
        shape = np.full(int(group_of.max()) + 1, np.inf)
        shape[shares.group_of] = shares.beta

        def make(proof: Proof, fit: Floats) -> MatrixDesign:
            own = (measured.marginal, rows, tuple(group_of.tolist()))
            return MatrixDesign(request, self.name, budgets, recovery, proof, fit, *own, details=details)

        cost, smooth = partial(cost_of_rows, rows, group_of, privacy=privacy), partial(smoothing, rows, privacy)
        return best_fit(privacy, [shape], cost, smooth, make)

    def _wide(self, request: Request, matrix: QueryTable, budgets: Budgets, recovery: Recovery) -> Design:
        """The plan for the distinct columns of sparse rows, over all cells.            [designs/matrix/classes.py]"""
        classes = classes_of(matrix.rows)
        lifted = Lifted.of(request.workload, matrix.marginal, classes)
        if isinstance(lifted, str):
            problem = f"{lifted} lies outside its row space: it weighs cells differently that no row tells apart"
            raise BadInput("matrix", problem, "add the rows that are missing, or ask for what the matrix can answer")
        columns, values, row_of = lifted.rows.arrays
        weights = np.maximum(lifted.weights, _LITTLE * lifted.weights.max())  # what is only published is answered too
        scaled = values * np.sqrt(weights)[row_of]  # the error is that of rows of weight 1
        asked = SparseRows.of_entries((len(lifted.rows), len(classes)), row_of, columns, scaled)
        small = over_classes(request, asked, classes)
        [form] = small.workload.forms
        found = Matrix(rows=QueryTable((0,), form.attributes, classes.rows)).plan(small, budgets, recovery)
        if not isinstance(found, MatrixDesign):
            raise TypeError(type(found).__name__)
        decision = (self.name, budgets, recovery, found.proof, found.budgets)
        own = (matrix.marginal, classes.expand(found.rows), found.group_of)
        return WideMatrixDesign(request, *decision, *own, details={**found.details, "classes": len(classes)})


def _too_wide(rows: SparseRows, request: Request) -> str | None:
    """Why rows over a large table cannot be measured."""
    total = rows.width if request.privacy.total_is_public else 0
    if (numbers := len(rows.values) + total) > _MOST_NUMBERS:
        return f"over {MAX_CELLS:,} cells it may hold {_MOST_NUMBERS:,} numbers, and it holds {numbers:,}"
    if (distinct := len(classes_of(rows))) > MAX_CELLS:
        return f"the matrix has {distinct:,} distinct columns, more than {MAX_CELLS:,}"
    return None


@dataclass(frozen=True, eq=False)
class _Measured:
    """Rows over a table's cells; the last one is public under replace-one (the total, which is known)."""

    request: Request
    marginal: Marginal
    rows: SparseRows
    public: Bools
    T: Floats

    @classmethod
    def of(cls, request: Request, marginal: Marginal, rows: SparseRows) -> _Measured:
        """All rows but zeros and, under replace-one, constants, whose place the total takes."""
        kept = np.diff(rows.starts) > 0
        if request.privacy.total_is_public:
            kept &= ~constant_rows(rows)
        if not kept.any() and not request.privacy.total_is_public:
            raise BadInput("rows", "all of them are zero", "give rows that count something")
        chosen = _chosen(rows, kept, total=request.privacy.total_is_public)
        public = np.arange(len(chosen)) >= int(kept.sum())
        return cls(request, marginal, chosen, public, energies(request, marginal))

    @property
    def count(self) -> int:
        """How many rows get noise."""
        return int((~self.public).sum())

    @property
    def noisy(self) -> SparseRows:
        """The rows that get noise."""
        return _chosen(self.rows, ~self.public)

    def keep(self, needed: Bools) -> _Measured:
        """Only these of the noisy rows."""
        if needed.all():
            return self
        kept = self.public.copy()
        kept[~self.public] = needed
        return _Measured(self.request, self.marginal, _chosen(self.rows, kept), self.public[kept], self.T)

    def check(self, recovery: Recovery) -> None:
        """Refuse a matrix that cannot answer what is asked for."""
        if recovery == "none":
            if (missing := Matches(self.rows).missing(self.request.workload, self.marginal)) is not None:
                reason = f"without recovery every answer must be a multiple of one of its rows, and {missing} is not"
                raise NotApplicable("matrix", reason)
        elif (missing := self.outside()) is not None:
            problem = f"{missing} lies outside its row space: no combination of its rows answers it"
            raise BadInput("matrix", problem, "add the rows that are missing, or ask for what the matrix can answer")

    def outside(self) -> str | None:
        """What the rows cannot answer, if anything."""
        space = row_space(self.rows, tuple(self.public.tolist()))
        return outside(space, self.request.workload, self.marginal)

    def s_of_rows(self) -> Floats:
        """s without recovery: each answer weighs one row."""
        matches, workload, s = Matches(self.rows), self.request.workload, np.zeros(len(self.rows))
        answers = [matches.table(workload.schema, self.marginal, A) for A in workload.marginals]
        answers += [matches.form(workload.schema, self.marginal, form) for form in workload.forms]
        for (at, factor), weight in zip(answers, (*workload.weights, *workload.form_weights), strict=True):
            np.add.at(s, at, weight * factor**2)
        return np.asarray(s[~self.public])

    def s_of_least_squares(self, weights: Floats) -> Floats:
        """s of least squares with the given weights: the diagonal of H^T T H."""
        H = row_space(self.rows, tuple(self.public.tolist())).inverse(weights)[:, ~self.public]
        return np.asarray(np.maximum(np.einsum("ci,ci->i", self.T @ H, H), 0.0))


def _chosen(rows: SparseRows, kept: Bools, *, total: bool = False) -> SparseRows:
    """Some rows, and the total below them."""
    columns, values, row_of = rows.arrays
    entries = kept[row_of]
    lengths = np.diff(rows.starts)[kept].tolist()
    last = rows.width if total else 0
    starts = np.concatenate([[0], np.cumsum(lengths + [last] * total, dtype=np.int64)])
    listed = np.concatenate([columns[entries], np.arange(last)])
    numbers = np.concatenate([values[entries], np.ones(last)])
    return SparseRows(rows.width, tuple(starts.tolist()), tuple(listed.tolist()), tuple(numbers.tolist()))


def _optimal(measured: _Measured, s: Floats) -> tuple[_Measured, Shares]:
    """The best budgets for given s; rows that no answer needs are dropped."""
    used = s > 1e-14 * s.max(initial=0.0)
    needed = measured.keep(used)
    if not used.any():  # only what is public is asked for
        return needed, Shares.uniform(0)
    return needed, optimal(needed.noisy, s[used], measured.request.privacy)


def _alternate(start: _Measured) -> tuple[_Measured, Shares]:
    """Budgets given R, R given budgets, from uniform budgets and from those for R = 1 where S holds Q."""
    first = [(start, Shares.uniform(start.count))]
    if Matches(start.rows).missing(start.request.workload, start.marginal) is None:
        first.append(_optimal(start, start.s_of_rows()))
    return min(starmap(_descend, first), key=itemgetter(0))[1:]


def _descend(measured: _Measured, shares: Shares) -> tuple[float, _Measured, Shares]:
    work = len(measured.rows) * measured.rows.width * min(len(measured.rows), measured.rows.width)
    best = math.inf, measured, shares
    for _ in range(int(min(max(3e10 / work, 2), 200))):
        if not measured.count:
            return 0.0, measured, shares
        s, value = _value(measured, shares)
        if value > best[0] * (1 - 1e-9):
            break
        best = value, measured, shares
        measured, shares = _without_weak(*_optimal(measured, s))
    return best


def _value(measured: _Measured, shares: Shares) -> tuple[Floats, float]:
    """s of generalised least squares, and the error at a cost of one, by the continuous formulas."""
    privacy, noisy = measured.request.privacy, measured.noisy
    beta = shares.beta / float(cost_of_rows(noisy, np.arange(len(noisy)), shares.beta, privacy))
    variances = law_of(privacy).formula(beta)
    s = measured.s_of_least_squares(1 / variances)
    return s, float(s @ variances)


def _without_weak(measured: _Measured, shares: Shares) -> tuple[_Measured, Shares]:
    """Give up rows whose budget has all but vanished, where the others do as well without them."""
    strong = shares.beta > 1e-3 * shares.beta.max(initial=0.0)
    fewer = measured.keep(strong)
    if strong.all() or fewer.outside() is not None:
        return measured, shares
    rest = Shares(shares.beta[strong], np.unique(shares.group_of[strong], return_inverse=True)[1], shares.how)
    worse = _value(fewer, rest)[1] > _value(measured, shares)[1] * (1 + 1e-9)
    return (measured, shares) if worse else (fewer, rest)
