"""What a release says of its privacy: the guarantee in plain words, for people who will never read a formula.

Whatever is written or printed about a release whose noise came from a seed carries a stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from hushcube.designs.design import digest_of
from hushcube.faces.value import HALF_WIDTH, published_promises
from hushcube.model.edition import Edition
from hushcube.model.privacy import Privacy, Unit
from hushcube.model.schema import Schema
from hushcube.model.words import UNIT_NOUN
from hushcube.shown import Page, Shown
from hushcube.text import at_least, at_most, code, prose, visible

if TYPE_CHECKING:
    from hushcube.bundle.part import PublishedFace  # whose files are stamped
    from hushcube.bundle.receipt import Receipt
    from hushcube.designs.design import Design
    from hushcube.planning.plan import Plan

STATEMENT: Final = "PRIVACY.md"
NOT_PRIVATE: Final = "NOT PRIVATE: the noise came from a seed. This release is for experiments and protects nobody."
_APART: Final = (
    "How it is met: counts and sums are measured apart, each with a part of the guarantee, and the parts add up to "
    "the whole. A sum is protected like a count of rows that may count as often as their value says"
)
_PUBLIC_MEASURES: Final = (
    "The attributes, their values, and the bounds and resolutions of the measures (`schema.yaml`) were declared as "
    "public; they are not protected. Values beyond the bounds were clipped before anything was summed."
)
_PROOFS: Final = {
    "smoothing": ", calibrated by the analytic Gaussian mechanism and widened so that the proof covers discrete noise",
    "exact": ", calibrated by the exact tail of that noise",
    "zcdp": ", calibrated through zero-concentrated differential privacy",
}
_ESTIMATED: Final = (
    "The column `estimated_error` says how far each cell is expected to be from the true count. How large errors are "
    "was measured, privately, by a last look of the run; how they are spread over cells is a model's guess. So it is "
    f"estimated, and not promised: the value, give or take {HALF_WIDTH:.2f} times its estimated error, should hold the "
    "true count in 95% of cases. What is promised are the standard errors of the unbiased tables."
)
_LISTED: Final = 40  # tables named in a sentence; plan.json names all
_FACES: Final = (
    "Folders below `faces`, if there are any, hold the same tables under other promises, computed from the same noisy "
    "numbers. The `PRIVACY.md` of each says what it promises, and which public facts it relies on."
)


def statements(
    plan: Plan,
    faces: Iterable[PublishedFace],
    places: Mapping[str, str],
    *,
    private: bool,
    receipt: Receipt | None = None,
) -> dict[str, str]:
    """The texts of PRIVACY.md of a release and of its faces, in their places, by the names of the files."""
    own = {f"{places[face.name]}/{STATEMENT}": face_statement(plan, face, private=private) for face in faces}
    return {STATEMENT: privacy_statement(plan, private=private, receipt=receipt), **own}


def privacy_statement(
    plan: Plan, *, private: bool, faces: Iterable[PublishedFace] | None = None, receipt: Receipt | None = None
) -> str:
    """The text of PRIVACY.md; in releases of formats 1 and 2 the promises of their `faces` were a part of it."""
    return _text(
        *_guarantee("release", plan.schema, plan.privacy, private=private),
        *(_sums_met(plan) if plan.asked else _counts_met(plan.count)),
        *([] if receipt is None else [receipt.statement]),
        *(
            [_FACES]
            if faces is None
            else [told for face in faces for told in _face(face, plan, f"`faces/{face.name}`")]
        ),
    )


def face_statement(plan: Plan, face: PublishedFace, *, private: bool) -> str:
    """The text of PRIVACY.md in the folder of a face."""
    return _text(
        f"# The face `{face.name}` of the release {code(plan.schema.name)}",
        *_stamp(private=private),
        *_face(face, plan, "this folder"),
        *(["Its tables hold counts; sums and averages are in the unbiased tables alone."] if plan.asked else []),
        "The guarantee is that of the release: see its own `PRIVACY.md`.",
    )


def earlier_cube_statement(plan: Plan, *, private: bool) -> str:
    """The text of PRIVACY.md of a cube of format 3."""
    shares = ", ".join(f"{code(name)}: {part.privacy}" for name, part in plan.designs.items())
    return _text(
        *_guarantee("cube", plan.schema, plan.privacy, private=private),
        f"{_APART} ({shares}). "
        "Averages and all else in this folder are computed from the noisy counts and sums and cost nothing more.",
        _PUBLIC_MEASURES + _files(plan),
    )


def is_stamped(statement: str) -> bool:
    """Whether a statement says that the release is not private: its stamp is a paragraph of its own, after the title.

    A name that holds the same words stands inside a line.
    """
    return statement.split("\n")[2:3] == _stamp(private=False)


def _text(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs) + "\n"


def _stamp(*, private: bool) -> list[str]:
    return [] if private else [f"**{NOT_PRIVATE}**"]


def _guarantee(kind: str, schema: Schema, privacy: Privacy, *, private: bool) -> list[str]:
    """The title and the promise: how much, between which neighbours, for whom."""
    return [
        f"# Privacy of the {kind} {code(schema.name)}",
        *_stamp(private=private),
        f"Guarantee: **{privacy}**.",
        _meaning(privacy),
        _neighbours(privacy, schema.unit_noun),
        _counted(schema.unit_noun) + _unit(privacy, schema.unit),
    ]


def _counts_met(design: Design) -> list[str]:
    """How the guarantee is met where counts are all there is."""
    return [
        f"How it is met: {_measured(design)}. "
        "Everything else in this folder is computed from those noisy numbers and costs nothing more. "
        "The full description is in `plan.json`.",
        *_left_out(design),
        *_guessed_from(design.edition),
        *([] if design.composition is None else [design.composition]),
        *_spending(design),
        *([] if design.note is None else [f"Note: {design.note}."]),
        "The attributes and their values (`schema.yaml`) were declared as public; they are not protected."
        f"{_files(design)}",
    ]


def _sums_met(plan: Plan) -> list[str]:
    """How it is met where measures are summed as well."""
    notes = dict.fromkeys(design.note for design in plan.designs.values() if design.note is not None)
    return [
        f"{_APART}.",
        "\n".join(f"- {code(name)}: {d.privacy}; {_measured(d)}." for name, d in plan.designs.items()),
        "Averages and everything else in this folder are computed from those noisy numbers and cost nothing more. "
        "The full description is in `plan.json`.",
        *(f"Note: {note}." for note in notes),
        _PUBLIC_MEASURES + _files(plan),
    ]


def _left_out(design: Design) -> list[str]:
    """Which of the tables asked for are not published."""
    words = design.left_out
    told = f"{', '.join(map(code, words[:_LISTED]))}{f' and {len(words) - _LISTED:,} more' * (len(words) > _LISTED)}"
    return [f"Asked for, but left out, for they would not be precise: {told}."] if words else []


def _guessed_from(edition: Edition | None) -> list[str]:
    """From which earlier edition tables were guessed."""
    if edition is None:
        return []
    return [
        f"Tables were guessed from an earlier edition, the release of the plan {code(edition.plan_digest)}, which the "
        "publisher declares to be public; what was used of its tables has the digest "
        f"{code(digest_of(edition.to_dict()))}. That costs nothing here. What the earlier edition says of people is "
        "under its own guarantee; for whoever is in both, the two add up, as those of any two releases do."
    ]


def _measured(design: Design) -> str:
    noise = f"exact discrete {design.law.name.title()} noise{_PROOFS.get(design.proof, '')}"
    return f"strategy {code(design.strategy)} measured {prose(design.in_words)} with {noise}"


def _face(face: PublishedFace, plan: Plan, place: str) -> list[str]:
    """What a face promises, and which public facts went into it."""
    sentence = published_promises()[face.name].of(prose(plan.schema.unit_noun))
    promise = f"The face `{face.name}` ({place}) {sentence}"
    told = [f"{promise} It is computed from the same noisy numbers, and costs no privacy."]
    told += _guessed_from(face.edition(plan.schema))
    if facts := face.facts(plan.schema).describe():
        told += [
            "It also satisfies these facts, which the publisher declares to be public knowledge. They were not "
            "measured, and the guarantee does not cover them:",
            "\n".join(f"- {prose(sentence)}" for sentence in facts),
        ]
    return [*told, _ESTIMATED] if face.is_estimated else told


def _spending(plan: Design) -> list[str]:
    """What an adaptive run used of its budget, and what may be said of that: computed from the plan it ended with."""
    if not plan.is_outcome:
        return []
    if plan.strategy == "selective":
        return [
            f"The method `{plan.strategy}` decided how precisely each table is measured while noisy answers came in: "
            "it first measured, with noise of their own, how far larger tables are from what smaller ones say. These "
            "numbers are part of the measurement, and the guarantee covers them and everything that was decided by "
            "them. Standard errors are those of the unbiased tables; a table that smaller ones explain well was hardly "
            "measured, and its unbiased cells are rough, while its face values are not."
        ]
    spent, left = at_most(plan.person_cost), at_least(plan.person_rest)
    return [
        f"The method `{plan.strategy}` chose its noise while noisy answers came in. The guarantee of the release is "
        f"the whole epsilon it was allowed. The answers that came out cost {spent} of it: for this outcome the "
        f"ratio of probabilities is at most exp({spent}) (an ex-post loss). That figure depends on the answers, so "
        f"it is no guarantee of the method, and the remaining {left} may be spent only under a privacy filter that "
        "counts this release and whatever follows against the same epsilon.",
        "Note: which noise a table got was decided from noisy answers, so standard errors are those of its last noise, "
        "and intervals cover the truth about as often as they say, not exactly.",
    ]


def _meaning(privacy: Privacy) -> str:
    if privacy.rho is not None:
        rho = at_most(privacy.rho)
        return (
            "What is published here depends on any one person's data only slightly: zero-concentrated differential "
            f"privacy with rho = {rho} (the Rényi divergence of every order a is at most {rho} · a)."
        )
    exception = "" if privacy.delta is None else f"up to a probability of {at_most(privacy.delta)}, "
    return (
        "Whatever is published here would have been published with nearly the same probability without any one "
        f"person's data: {exception}the probability of any outcome changes by a factor of at most "
        f"exp({at_most(privacy.epsilon or Fraction(0))})."
    )


def in_plain_words(plan: Plan) -> list[str]:
    """The guarantee for readers of other files than PRIVACY.md, without markup: how much, and for whom."""
    privacy, schema = plan.privacy, plan.schema
    return [
        f"Guarantee: {privacy}.",
        _meaning(privacy),
        _neighbours(privacy, schema.unit_noun, visible),
        _counted(schema.unit_noun, visible) + _unit(privacy, schema.unit, visible),
    ]


def _neighbours(privacy: Privacy, noun: str, said: Callable[[str], str] = prose) -> str:
    """Whoever is protected is a person; if a person has one row, there are as many of them as the tables count."""
    people = said(noun) if privacy.rows_per_person == 1 else UNIT_NOUN
    if privacy.neighbours == "add-remove":
        return f"Compared are data sets with and without one person; even the number of {people} is protected."
    return (
        f"Compared are data sets in which one person's data is replaced by any other; the number of {people} is public."
    )


def _counted(noun: str, said: Callable[[str], str] = prose) -> str:
    """What the tables count, if that is not said by the word person."""
    return "" if noun == UNIT_NOUN else f"The tables count {said(noun)}, one for each row. "


def _unit(privacy: Privacy, unit: Unit | None, named: Callable[[str], str] = code) -> str:
    if unit is not None:
        own = " Each row without a value there is a person of its own." if unit.missing == "own" else ""
        return (
            f"A person is everything with one value of {named(unit.column)}. Of each person at most {unit.max_rows} "
            f"row(s) were counted, chosen at random, and the noise covers all of them.{own} "
            "The tables are of these bounded contributions: standard errors and margins do not cover the rows that "
            "were left out."
        )
    if privacy.rows_per_person == 1:
        return "One row is taken as one person. If a person has several rows, the guarantee for that person is weaker."
    return (
        f"A person is taken to have at most {privacy.rows_per_person} rows, and the noise covers all of them. "
        "If a person has more rows, the guarantee for that person is weaker."
    )


def _files(plan: Design | Plan) -> str:
    """Which files were published beside the schema."""
    told = "".join(
        f" The labels of {', '.join(map(code, attributes))} were read from the file {code(name)}, which is public, too."
        for name, attributes in plan.schema.label_files.items()
    )
    return told + (" So are the rows of the matrix of queries (`plan.json`)." if plan.workload.queries else "")


def stamp(*, private: bool | None) -> dict[str, Any]:
    """The fields of a JSON document that say whether a release is private; None where nobody knows.

    >>> stamp(private=True)
    {'private': True}
    >>> stamp(private=False)["warning"][:12]
    'NOT PRIVATE:'
    """
    return {"private": private, **({"warning": NOT_PRIVATE} if private is False else {})}


def file_stamp(*, private: bool) -> dict[str, str]:
    """The metadata of a Parquet file of a release, which goes with the file wherever that is copied."""
    return {} if private else {"hushcube": NOT_PRIVATE}


def table_metadata(schema: Schema, *, private: bool) -> dict[str, str]:
    """The same of a table, with what its errors do not cover."""
    bounded = {} if schema.caveat is None else {"hushcube_bounded": schema.caveat}
    return {**file_stamp(private=private), **bounded}


def mark(private: bool) -> str:
    """The stamp at the end of a line that introduces a release."""
    return "" if private else ", NOT PRIVATE"


class Stamped(Shown):
    """What is shown as its page: above it the stamp of its release, below it what the errors of tables do not cover."""

    def _whole_page(self: Any) -> Page:
        caveat = self.schema.caveat if hasattr(self, "schema") else None
        above = [NOT_PRIVATE] if self.private is False else []
        return Page((*above, *self.page().parts, *([] if caveat is None else [caveat])))
