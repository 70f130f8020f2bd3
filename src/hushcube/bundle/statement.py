"""The guarantee in plain words, for people who will never read a formula."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from hushcube.bundle.published_face import PublishedFace
from hushcube.bundle.stamp import NOT_PRIVATE
from hushcube.designs.design import Design
from hushcube.faces.value import published_promises
from hushcube.model.privacy import Privacy, Unit
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.text import at_least, at_most, code, prose

_PUBLIC_MEASURES: Final = (
    "The attributes, their values, and the bounds and resolutions of the measures (`schema.yaml`) were declared as "
    "public; they are not protected. Values beyond the bounds were clipped before anything was summed."
)
_FACES: Final = [
    "Folders below `faces`, if there are any, hold the same tables under other promises, computed from the same noisy "
    "numbers. The `PRIVACY.md` of each says what it promises, and which public facts it relies on.",
    "",
]


def privacy_statement(plan: Plan, *, private: bool, faces: Iterable[PublishedFace] | None = None) -> str:
    """The text of PRIVACY.md; in releases of formats 1 and 2 the promises of their `faces` were a part of it."""
    lines = [
        *_guarantee("release", plan.schema, plan.privacy, private=private),
        *(_sums_met(plan) if plan.asked else _counts_met(plan.count)),
        *(_FACES if faces is None else [line for face in faces for line in _face(face, plan, f"`faces/{face.name}`")]),
    ]
    return "\n".join(lines)


def _counts_met(design: Design) -> list[str]:
    """How the guarantee is met where counts are all there is."""
    return [
        f"How it is met: strategy {code(design.strategy)} measured {prose(design.in_words)} "
        f"with exact discrete {design.law.name.title()} noise{_proof(design)}. "
        "Everything else in this folder is computed from those noisy numbers and costs nothing more. "
        "The full description is in `plan.json`.",
        "",
        *_spending(design),
        *([] if design.note is None else [f"Note: {design.note}.", ""]),
        "The attributes and their values (`schema.yaml`) were declared as public; they are not protected."
        f"{_files(design)}",
        "",
    ]


def _sums_met(plan: Plan) -> list[str]:
    """How it is met where measures are summed as well."""
    notes = dict.fromkeys(design.note for design in plan.designs.values() if design.note is not None)
    return [
        "How it is met: counts and sums are measured apart, each with a part of the guarantee, and the parts add up to "
        "the whole. A sum is protected like a count of rows that may count as often as their value says.",
        "",
        *(
            f"- {code(name)}: {design.privacy}; strategy {code(design.strategy)} measured {prose(design.in_words)} "
            f"with exact discrete {design.law.name.title()} noise{_proof(design)}."
            for name, design in plan.designs.items()
        ),
        "",
        "Averages and everything else in this folder are computed from those noisy numbers and cost nothing more. "
        "The full description is in `plan.json`.",
        "",
        *(line for note in notes for line in (f"Note: {note}.", "")),
        _PUBLIC_MEASURES + _files(plan),
        "",
    ]


def face_statement(plan: Plan, face: PublishedFace, *, private: bool) -> str:
    """The text of PRIVACY.md in the folder of a face."""
    lines = [
        f"# The face `{face.name}` of the release {code(plan.schema.name)}",
        "",
        *([] if private else [f"**{NOT_PRIVATE}**", ""]),
        *_face(face, plan, "this folder"),
        *(["Its tables hold counts; sums and averages are in the unbiased tables alone.", ""] if plan.asked else []),
        "The guarantee is that of the release: see its own `PRIVACY.md`.",
        "",
    ]
    return "\n".join(lines)


def is_stamped(statement: str) -> bool:
    """Whether a statement says that the release is not private: its stamp is a paragraph of its own, after the title.

    A name that holds the same words stands inside a line.
    """
    return statement.split("\n")[2:3] == [f"**{NOT_PRIVATE}**"]


def _guarantee(kind: str, schema: Schema, privacy: Privacy, *, private: bool) -> list[str]:
    """The title and the promise: how much, between which neighbours, for whom."""
    return [
        f"# Privacy of the {kind} {code(schema.name)}",
        "",
        *([] if private else [f"**{NOT_PRIVATE}**", ""]),
        f"Guarantee: **{privacy}**.",
        "",
        _meaning(privacy),
        "",
        _neighbours(privacy),
        "",
        _unit(privacy, schema.unit),
        "",
    ]


def earlier_cube_statement(plan: Plan, *, private: bool) -> str:
    """The text of PRIVACY.md of a cube of format 3."""
    shares = ", ".join(f"{code(name)}: {part.privacy}" for name, part in plan.designs.items())
    lines = [
        *_guarantee("cube", plan.schema, plan.privacy, private=private),
        "How it is met: counts and sums are measured apart, each with a part of the guarantee, and the parts add up to "
        f"the whole. A sum is protected like a count of rows that may count as often as their value says ({shares}). "
        "Averages and all else in this folder are computed from the noisy counts and sums and cost nothing more.",
        "",
        _PUBLIC_MEASURES + _files(plan),
        "",
    ]
    return "\n".join(lines)


def _face(face: PublishedFace, plan: Plan, place: str) -> list[str]:
    """What a face promises, and which public facts went into it."""
    lines = [f"The face `{face.name}` ({place}) {published_promises()[face.name].sentence}"]
    lines[0] += " It is computed from the same noisy numbers, and costs no privacy."
    if told := face.facts(plan.schema).describe():
        lines += [
            "",
            "It also satisfies these facts, which the publisher declares to be public knowledge. They were not "
            "measured, and the guarantee does not cover them:",
            "",
            *(f"- {prose(sentence)}" for sentence in told),
        ]
    return [*lines, ""]


def _spending(plan: Design) -> list[str]:
    """What an adaptive run used of its budget, and what may be said of that: computed from the plan it ended with."""
    if not plan.is_outcome:
        return []
    spent, left = at_most(plan.person_cost), at_least(plan.person_rest)
    return [
        f"The method `{plan.strategy}` chose its noise while noisy answers came in. The guarantee of the release is "
        f"the whole epsilon it was allowed. The answers that came out cost {spent} of it: for this outcome the "
        f"ratio of probabilities is at most exp({spent}) (an ex-post loss). That figure depends on the answers, so "
        f"it is no guarantee of the method, and the remaining {left} may be spent only under a privacy filter that "
        "counts this release and whatever follows against the same epsilon.",
        "",
        "Note: which noise a table got was decided from noisy answers, so standard errors are those of its last noise, "
        "and intervals cover the truth about as often as they say, not exactly.",
        "",
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


def _neighbours(privacy: Privacy) -> str:
    if privacy.neighbours == "add-remove":
        return "Compared are data sets with and without one person; even the number of people is protected."
    return "Compared are data sets in which one person's data is replaced by any other; the number of people is public."


def _unit(privacy: Privacy, unit: Unit | None) -> str:
    if unit is not None:
        own = " Each row without a value there is a person of its own." if unit.missing == "own" else ""
        return (
            f"A person is everything with one value of {code(unit.column)}. Of each person at most {unit.max_rows} "
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


def _proof(plan: Design) -> str:
    if plan.proof == "smoothing":
        return ", calibrated by the analytic Gaussian mechanism and widened so that the proof covers discrete noise"
    if plan.proof == "exact":
        return ", calibrated by the exact tail of that noise"
    return ", calibrated through zero-concentrated differential privacy" if plan.proof == "zcdp" else ""
