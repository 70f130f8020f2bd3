"""Options that several verbs share, with the files that they name."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from audit.fuzz import words
from audit.fuzz.bundles import write_bundle
from audit.fuzz.hostile import NUMBERS, WHOLE
from audit.fuzz.matrices import write_facts, write_matrix
from audit.fuzz.sources import write_source
from audit.fuzz.subjects import Subject, subject, write_schema

Groups = list[list[str]]
"""Options with their values, as they are given together."""

STRATEGIES = (
    "identity", "workload", "base", "all-cuboids", "bmax", "pmost", "cluster", "fourier", "residual", "wavelet",
    "hierarchy", "matrix", "sketch", "covering", "levels", "dwork", "twophase", "iresamp", "ireduct", "auto", "oracle",
)  # fmt: skip
QUICK = ("identity", "identity", "workload", "workload", "fourier", "dwork", "auto")
BOUNDED = (
    "--runs", "--folds", "--repetitions", "--buckets", "--people", "--rows", "--max-values", "--engine", "--effort",
)  # fmt: skip
"""Options whose large values rightly mean much work: only their own values are given to them."""


@dataclass
class Making:
    """What the generators of a case share."""

    rng: Random
    folder: Path
    pool: Path
    hostile: float
    subject: Subject = field(init=False)

    def __post_init__(self) -> None:
        self.subject = subject(self.rng)

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def data(self) -> Groups:
        return write_source(self.rng, self.subject, self.folder, hostile=self.hostile)

    def bundle(self, kinds: tuple[str, ...] = ()) -> str:
        write_bundle(self.rng, self.pool, self.folder / "published", hostile=self.hostile, kinds=kinds)
        return "published"


def _budget(making: Making) -> Groups:
    rng = making.rng
    amount = rng.choice(("1", "0.1", "1/3", "10", "1e-9", "500", "0.001"))
    if making.maybe(making.hostile / 5):
        amount = rng.choice(NUMBERS)
    kind = rng.randrange(5)
    groups = [["--rho" if kind == 0 else "--epsilon", amount]]
    if kind == 1:
        groups.append(
            ["--delta", rng.choice(NUMBERS if making.maybe(making.hostile / 3) else ("1e-6", "0.5", "1e-100"))]
        )
    return [*groups, ["--neighbours", rng.choice(("add-remove", "add-remove", "replace-one"))]]


OWN = {
    "bmax": {"cover": ("fewest", "cheapest")},
    "pmost": {"threshold": ("50%", "10", "1e9"), "publish": ("all", "precise"), "cover": ("fewest", "cheapest")},
    "hierarchy": {"fan-out": ("2", "3")},
    "sketch": {"buckets": ("1", "4", "0"), "repetitions": ("1", "3", "0"), "estimate": ("average", "median")},
}
ADAPTING = {
    "sanity-bound": ("1", "10", "0.5"), "lambda-max": ("10", "100", "1e6"), "lambda-step": ("1", "0.5", "5"),
    "lambda-factor": ("0.5", "0.9", "0.99"), "start-share": ("0.05", "0.5"), "first-share": ("0.07", "0.9"),
    "caution": ("0", "0.1"), "pick": ("average", "worst"), "people": ("10", "1000", "0", "-1"),
    "people-epsilon": ("0.1", "0.01"), "relative-error": ("0.1", "1"), "above": ("5", "1%"),
}  # fmt: skip
METHODS = ("twophase", "iresamp", "ireduct")
"""Methods whose options are those of ADAPTING, as far as they have them; a case may give one that has others."""


def with_options(
    making: Making, name: str, plausible: dict[str, tuple[str, ...]], share: float, always: str = ""
) -> str:
    """A word with some of the options."""
    rng, given = making.rng, []
    for option, values in plausible.items():
        if option == always or making.maybe(share):
            hostile = f"--{option}" not in BOUNDED and making.maybe(making.hostile / 2)
            given.append(f"{option}={rng.choice(NUMBERS if hostile else values)}")
    if making.maybe(making.hostile / 50):
        given.append(rng.choice(("x=1", "fan-out=2", "=", "norm", "")))
    return ":".join((name, ",".join(given))) if given else name


def strategy_word(making: Making, name: str) -> str:
    """A strategy, with options of its own and seldom with those of another."""
    rng, who = making.rng, making.subject
    if name in METHODS:
        share = 0.15
        own = {option: values for option, values in ADAPTING.items() if option in _has(name) or making.maybe(0.02)}
        return with_options(making, name, own, share, always="sanity-bound")
    if name == "matrix":
        return f"matrix:rows={write_matrix(rng, who, making.folder, 'matrix', hostile=making.hostile)}"
    return with_options(making, name, OWN.get(name, {}), 0.3)


def _has(name: str) -> set[str]:
    from hushcube.strategies import ALL

    return {option.word for option in ALL[name].options()}


def planning(making: Making) -> Groups:
    """The options of `plan` that `release` takes too."""
    rng, who = making.rng, making.subject
    write_schema(rng, who, making.folder, hostile=making.hostile / 2)
    groups = [["--schema", "schema.yaml"], *_budget(making)]
    groups += [["--workload", words.workload(rng, who)] for _ in range(rng.choice((1, 1, 1, 1, 2)))]
    if any("queries" in group[-1] for group in groups) or making.maybe(0.1):
        groups.append(["--queries", write_matrix(rng, who, making.folder, "queries", hostile=making.hostile)])
    strategy = rng.choice(STRATEGIES if making.maybe(0.3) else QUICK)
    if strategy != "auto" or making.maybe(0.5):
        groups.append(["--strategy", strategy_word(making, strategy)])
    if making.maybe(0.02):
        groups.append(["--strategy", strategy_word(making, rng.choice(("matrix", "workload", "sketch")))])
    plausible = {
        "--rows-per-person": ("1", "2", "5"), "--budgets": ("optimal", "uniform"),
        "--recovery": ("gls", "ols", "answers", "none"),
        "--effort": ("low", "default"), "--objective": ("total", "max"), "--relative-error": ("0.1", "1"),
        "--above": ("5", "1%"),
    }  # fmt: skip
    for option, values in plausible.items():
        if making.maybe(0.06):
            hostile = option not in BOUNDED and making.maybe(making.hostile / 2)
            groups.append([option, rng.choice(NUMBERS + WHOLE if hostile else values)])
    return groups


FACES = {
    "norm": ("l2", "l1", "linf"), "near": ("measured", "answers"),
    "method": ("auto", "full-table", "local", "barak", "shift"),
    "weights": ("equal", "deviation"),
    "minimise": ("max-coefficient", "total-coefficient", "max-marginal", "total-marginal"),
    "probability": ("0.95", "0.5", "1", "0", "0.999999999"),
}  # fmt: skip
KINDS = {
    "consistent": ("norm", "near", "weights"), "nonnegative": tuple(FACES), "integral": tuple(FACES)[:-1],
}  # fmt: skip


def face(making: Making, who: Subject, kinds: tuple[str, ...] = tuple(KINDS)) -> Groups:
    """A face with some of its options."""
    rng = making.rng
    kind = rng.choice(kinds)
    own = {option: values for option, values in FACES.items() if option in KINDS[kind] or making.maybe(0.02)}
    word = with_options(making, kind, own, 0.2)
    if making.maybe(0.25):
        facts = write_facts(rng, who, making.folder, hostile=making.hostile)
        word += f"{',' if ':' in word else ':'}facts={facts}"
    groups = [["--face", word]]
    if making.maybe(0.2):
        groups.append(["--time-limit", rng.choice(("60", "1e-9", "0.001"))])
    return groups


def measures(making: Making) -> Groups:
    """What is summed and averaged, and its parts of the budget."""
    groups = [["--measure", words.measure(making.rng, making.subject)]]
    if making.maybe(0.3):
        groups.append(["--shares", words.shares(making.rng, making.subject)])
    return groups
