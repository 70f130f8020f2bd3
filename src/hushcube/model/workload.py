"""The tables asked for, each with a weight, in words that are parsed and printed back identically.

2-way                all marginals of exactly two attributes; 0-way is the total
<=3-way              all of at most three, the total included
1..3-way             all of one to three
cube                 all
star:2               all 2-way, and the first half (rounded down) of the 3-way in lexicographic order
anchored:2:sex       all 2-way, and the 3-way that contain sex
age*sex,education    these
age@band*sex         the same at a level that the schema declares
prefix(age)*sex      for each sex, the people up to each age
ranges(age)*sex      for each sex, the people in each range of ages
queries              the rows of a matrix given beside the words
WORD=2.5             the same with weight 2.5; a later word sets the weight of a table named before

What the numbers of a table are is a word, too: count, sum(wage) or avg(wage).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, islice
from typing import Final, Literal

from hushcube.errors import BadInput, WorkloadError, readable
from hushcube.model.arrays import Marginal
from hushcube.model.coarser import MARK
from hushcube.model.form import Along, Form, RangeTable
from hushcube.model.queries import QueryTable
from hushcube.model.schema import COUNT, Schema
from hushcube.text import visible

MAX_MARGINALS: Final = 1_000_000
MOST_WEIGHT: Final = 1e9  # of a table; the least weight is its reciprocal
_EXAMPLE: Final = (
    "write for example `2-way`, `<=3-way`, `1..3-way`, `cube`, `star:2`, `anchored:2:sex`, `age*sex` or `prefix(age)`"
)
_WAYS: Final = re.compile(r"(?:(?P<most><=)|(?P<low>\d{1,4})\.\.)?(?P<high>\d{1,4})-way")
_STAR: Final = re.compile(r"star:(?P<k>\d{1,4})")
_RANGE: Final = re.compile(r"(?P<kind>prefix|ranges)\((?P<name>.+)\)")
_ANCHORED: Final = re.compile(r"anchored:(?P<k>\d{1,4}):(?P<name>.+)")
_SUM: Final = re.compile(r"(?P<kind>sum|avg)\((?P<name>.+)\)")
Kind = Literal["count", "sum", "avg"]


@dataclass(frozen=True, repr=False)
class Workload:
    """Marginals and forms of a schema in the order asked for, with positive weights.

    >>> from hushcube.model.attribute import Attribute
    >>> schema = Schema(tuple(Attribute(name=n, codes=2) for n in "abc"))
    >>> workload = Workload.parse(["2-way", "a*b=4"], schema)
    >>> str(workload), workload.marginals, workload.weights
    ('2-way,a*b=4', ((0, 1), (0, 2), (1, 2)), (4.0, 1.0, 1.0))
    """

    schema: Schema
    words: tuple[str, ...]
    marginals: tuple[Marginal, ...]
    weights: tuple[float, ...]
    forms: tuple[Form, ...] = ()
    form_weights: tuple[float, ...] = ()
    origin: Workload | None = None
    """As it was asked for, where plans are made with other weights than its words have."""

    @classmethod
    def parse(cls, words: str | Sequence[str], schema: Schema, queries: QueryTable | None = None) -> Workload:
        """Read workload words: one text, or several (each may hold several, separated by commas).

        A matrix of queries is asked for by the word `queries`, which is added where it is missing.
        """
        split = _split(words)
        if split is None:
            raise WorkloadError("workload", "must be words", _EXAMPLE)
        if queries is not None and not any(word.partition("=")[0].strip() == "queries" for word in split):
            split.append("queries")
        schema = schema.at_levels(_asked_levels(split, schema.declared)[0])
        weights: dict[Marginal, float] = {}
        forms: dict[Form, float] = {}
        printed = []
        for word in split:
            if not word:
                raise WorkloadError("workload", "a word is empty", _EXAMPLE)
            body, weight, text = _split_weight(word)
            if (form := _form(body, schema, queries)) is not None:
                forms[form] = weight
            for marginal in tables_of(body, schema) if form is None else ():
                weights[marginal] = weight
                if len(weights) > MAX_MARGINALS:
                    raise _too_many()
            printed.append(text)
        if not weights and not forms:
            raise WorkloadError("workload", "it asks for no marginal", _EXAMPLE)
        return cls(schema, tuple(printed), tuple(weights), tuple(weights.values()), tuple(forms), tuple(forms.values()))

    def __repr__(self) -> str:
        return f"Workload({visible(str(self))[:200]!r}: {len(self):,} tables, {readable(self.cells)} cells)"

    def __str__(self) -> str:
        return ",".join(self.words)

    def __len__(self) -> int:
        """How many tables are asked for."""
        return len(self.marginals) + len(self.forms)

    @cached_property
    def cells(self) -> int:
        """How many cells are asked for, as a Python integer that cannot overflow."""
        return sum(map(self.schema.cells, self.marginals)) + sum(form.cells for form in self.forms)

    @cached_property
    def published(self) -> tuple[Marginal, ...]:
        """The marginals that a release holds: those asked for, and the cells that range tables are summed from."""
        carriers = (form.marginal for form in self.forms if form.is_complete)
        return tuple(dict.fromkeys(chain(self.marginals, carriers)))

    def tables_of(self, word: str) -> tuple[Marginal, ...]:
        """The marginals that a word names; none where it names something that is not asked for."""
        try:
            named = tuple(tables_of(word, self.schema))
        except BadInput:
            return ()
        return named if set(named) <= set(self.marginals) else ()

    def weighing(self, weights: Sequence[float]) -> Workload:
        """The same tables in the same words, with other weights for planning: of marginals first, then of forms."""
        own = tuple(map(float, weights))
        several = len(self.marginals)
        return replace(self, weights=own[:several], form_weights=own[several:], origin=self.as_asked)

    @property
    def as_asked(self) -> Workload:
        """With the weights of its words, which is all that a plan file says of them."""
        return self.origin or self

    @property
    def balanced(self) -> Workload:
        """Tables count alike, whatever their number of cells: each weight is divided by it.      [docs/maths.md, 7]

        >>> from hushcube.model.attribute import Attribute
        >>> schema = Schema(tuple(Attribute(name=n, codes=2) for n in "ab"))
        >>> Workload.parse("0-way,a*b,b=3", schema).balanced.weights
        (1.0, 0.25, 1.5)
        """
        cells = (*map(self.schema.cells, self.marginals), *(form.cells for form in self.forms))
        asked = (*self.weights, *self.form_weights)
        return self.weighing([weight / own for weight, own in zip(asked, cells, strict=True)])

    @property
    def queries(self) -> QueryTable | None:
        """The matrix of queries, if there is one."""
        return next((form for form in self.forms if isinstance(form, QueryTable)), None)

    def word(self, marginal: Marginal) -> str:
        """The word that asks for a marginal alone."""
        return self.schema.describe(marginal) if marginal else "0-way"

    def keeping(self, kept: Collection[Marginal]) -> Workload:
        """Some of the marginals alone, in the order asked for, each by its own word; itself if those are all it has.

        >>> from hushcube.model.attribute import Attribute
        >>> schema = Schema(tuple(Attribute(name=n, codes=2) for n in "abc"))
        >>> str(Workload.parse("<=1-way,a*b=4", schema).keeping([(), (0, 1), (2,)]))
        '0-way,c,a*b=4.0'
        """
        some = {self.word(m): w for m, w in zip(self.marginals, self.weights, strict=True) if m in set(kept)}
        if len(some) == len(self):
            return self
        words = [word if weight == 1 else f"{word}={weight!r}" for word, weight in some.items()]
        return Workload.parse(words, self.schema)

    def form(self, word: str) -> Form | None:
        """The form that a word names, if it is asked for."""
        axes = sorted(name if kind == "cells" else f"{kind}({name})" for kind, name in _axes(word))
        return next((form for form in self.forms if sorted(form.word.split("*")) == axes), None)


def _split(words: str | Sequence[str]) -> list[str] | None:
    """Single words, or None where something else is given."""
    texts = [words] if isinstance(words, str) else list(words)
    if not all(isinstance(text, str) for text in texts):
        return None
    return [word.strip() for text in texts for word in text.split(",")]


def named_number(word: str) -> tuple[str, str | None]:
    """The word for tables, and the number that stands after it, if any.

    >>> named_number("age * sex = 2.5"), named_number("<=2-way")
    (('age*sex', '2.5'), ('<=2-way', None))
    """
    body, equals, number = word.rpartition("=") if re.search(r"[^<]=", word) else (word, "", "")
    return "*".join(part.strip() for part in body.split("*")), number.strip() if equals else None


def _split_weight(word: str) -> tuple[str, float, str]:
    body, number = named_number(word)
    if number is None:
        return body, 1.0, body
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not (0 < weight < math.inf):
        problem = f"the weight of {body!r} is not a positive number"
        raise WorkloadError("workload", problem, "write for example `age*sex=2.5`")
    if not 1 / MOST_WEIGHT <= weight <= MOST_WEIGHT:
        problem = f"the weight of {body!r} is not between {1 / MOST_WEIGHT:g} and {MOST_WEIGHT:g}"
        raise WorkloadError("workload", problem, "only ratios of weights matter: write for example `age*sex=2.5`")
    return body, weight, f"{body}={number}"


def _form(word: str, schema: Schema, queries: QueryTable | None) -> Form | None:
    """The form that a word asks for, or None where it asks for marginals."""
    if word == "queries":
        if queries is None:
            raise WorkloadError("workload", "`queries` is asked for, but no matrix is given", "give the matrix too")
        return queries.within(schema)
    axes = _axes(word)
    if all(kind == "cells" for kind, _ in axes):
        return None
    marginal = schema.marginal([name for _, name in axes])
    along = {name: kind for kind, name in axes}
    attributes = tuple(schema.attributes[i] for i in marginal)
    return RangeTable(marginal, attributes, tuple(along[a.name] for a in attributes))


def _axes(word: str) -> list[tuple[Along, str]]:
    """The kinds and names of the axes that stand between stars: `prefix(age)*sex`."""
    found: list[tuple[Along, str]] = []
    for part in word.split("*"):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            found.append(("cells", part.strip()))
        else:
            found.append(("prefix" if match["kind"] == "prefix" else "ranges", match["name"].strip()))
    return found


def public_part(schema: Schema, words: str | Sequence[str], others: Collection[str] | None = ()) -> Schema:
    """The schema without what only mapping files say and no table needs: a release publishes its schema.

    An attribute that nobody asks for is left out if its values come from a file, and levels from a file if none of
    them is asked for. `others` names attributes that are needed besides; None stands for all of them.
    """
    declared, split = schema.declared, _split(words)
    if not declared.label_files or split is None:
        return schema
    asked, families = _asked_levels(split, declared)
    kept = []
    for attribute in declared.attributes:
        everything = families or others is None or attribute.name in others
        levels = asked.get(attribute.name, set()) | ({None} if everything else set())
        if attribute.values_from is not None and not levels:
            continue
        is_plain = attribute.levels_from is not None and levels <= {None}
        kept.append(replace(attribute, levels=(), levels_from=None) if is_plain else attribute)
    if not kept:
        raise WorkloadError("workload", "asks for no attribute of the schema", "ask for a table of one of them")
    return replace(declared, attributes=tuple(kept))


def _asked_levels(words: Sequence[str], schema: Schema) -> tuple[dict[str, set[str | None]], bool]:
    """The levels of attributes that words name, None for the declared values; and whether all attributes are meant."""
    asked: dict[str, set[str | None]] = {}
    families, declared = False, set(schema.names)
    for word in words:
        body = _split_weight(word)[0] if word else word
        several = body in ("cube", "queries") or any(each.fullmatch(body) for each in (_WAYS, _STAR, _ANCHORED))
        families |= several and body != "0-way"
        for _, axis in _axes(body):
            name, mark, level = axis.partition(MARK)
            if mark:
                asked.setdefault(schema[name.strip()].name, set()).add(level.strip())
            elif name in declared:
                asked.setdefault(name, set()).add(None)
    return ({name: levels | {None} for name, levels in asked.items()} if families else asked), families


def tables_of(word: str, schema: Schema) -> Iterator[Marginal]:
    """The marginals of a word; families of them are over the declared values of all attributes."""
    chosen = _families(word, len(schema.declared), schema)
    if chosen is not None:
        places = [chain[-1] for chain in schema.chains]
        return (tuple(places[i] for i in marginal) for marginal in chosen)
    names = word.split("*")
    if not all(names):
        raise WorkloadError("workload", f"{word!r} cannot be read", _EXAMPLE)
    return iter([schema.marginal(names)])


def _families(word: str, d: int, schema: Schema) -> Iterator[Marginal] | None:
    if word == "cube":
        return _sizes(range(d + 1), d)
    if match := _WAYS.fullmatch(word):
        high = int(match["high"])
        low = 0 if match["most"] else high if match["low"] is None else int(match["low"])
        if low > high:
            raise WorkloadError("workload", f"{word!r} runs backwards", f"write `{high}..{low}-way`")
        _check_size(word, high, d)
        return _sizes(range(low, high + 1), d)
    if match := _STAR.fullmatch(word):
        k = int(match["k"])
        _check_size(word, k + 1, d)
        return chain(_sizes([k], d), islice(_sizes([k + 1], d), math.comb(d, k + 1) // 2))
    if match := _ANCHORED.fullmatch(word):
        k, anchor = int(match["k"]), schema.declared.position(match["name"].strip())
        _check_size(word, k + 1, d)
        return chain(_sizes([k], d), (m for m in _sizes([k + 1], d) if anchor in m))
    return None


def _sizes(orders: Sequence[int], d: int) -> Iterator[Marginal]:
    if sum(math.comb(d, k) for k in orders) > MAX_MARGINALS:
        raise _too_many()
    return chain.from_iterable(combinations(range(d), k) for k in orders)


def _check_size(word: str, k: int, d: int) -> None:
    if k > d:
        raise WorkloadError("workload", f"{word!r} needs {k} attributes, the schema has {d}", "ask for fewer ways")


def _too_many() -> WorkloadError:
    return WorkloadError("workload", f"it asks for more than {MAX_MARGINALS:,} marginals", "ask for fewer ways")


@dataclass(frozen=True)
class Quantity:
    """A kind of number: how many people, or the sum or the average of a measure."""

    kind: Kind
    measure: str = ""

    @classmethod
    def parse(cls, word: str, schema: Schema) -> Quantity:
        """Read `count`, `sum(wage)` or `avg(wage)`."""
        text = word.strip()
        if text == COUNT:
            return cls("count")
        match = _SUM.fullmatch(text)
        if match is None:
            raise WorkloadError("measure", f"{text[:40]!r} cannot be read", "write count, sum(NAME) or avg(NAME)")
        name = match["name"].strip()
        schema.measure(name)
        return cls("sum" if match["kind"] == "sum" else "avg", name)

    @property
    def part(self) -> str:
        """The part of a plan that is measured for it."""
        return self.measure or COUNT

    @property
    def width(self) -> int:
        """How many numbers say it: an estimate and its standard error, or an average and the ends of its interval."""
        return 3 if self.kind == "avg" else 2

    def __str__(self) -> str:
        return self.kind if self.kind == "count" else f"{self.kind}({self.measure})"


COUNTED: Final = Quantity(COUNT)
