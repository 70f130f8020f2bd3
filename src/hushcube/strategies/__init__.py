"""One strategy, one file. Each says whether it applies (`accepts`) and what to measure (`plan`).

`REGISTRY` is what `--strategy all` compares; a new strategy is added there and tested by the suite that is in place.
`ADAPTIVE` are the methods for small relative errors, which decide while answers come in. `ALL` are both, and
`selective`, which divides its budget while answers come in, for face values. They hold strategies without options;
`read_strategies` reads words such as `hierarchy:fan-out=4`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hushcube.designs.design import Design
from hushcube.designs.stacked.design import STACKED, StackedDesign
from hushcube.errors import BadInput, PlanError
from hushcube.options import read_word
from hushcube.strategies.adaptive import ADAPTIVE, NOT_PRIVATE
from hushcube.strategies.bmax import BMax
from hushcube.strategies.cluster import Cluster
from hushcube.strategies.covering import Covering
from hushcube.strategies.fourier import Fourier
from hushcube.strategies.given import Given
from hushcube.strategies.hierarchy import Hierarchy
from hushcube.strategies.identity import Base, Identity
from hushcube.strategies.levels import Levels
from hushcube.strategies.matrix import Matrix
from hushcube.strategies.pmost import PMost
from hushcube.strategies.residual import Residual
from hushcube.strategies.selective import Selective
from hushcube.strategies.sketch import Sketch
from hushcube.strategies.strategy import Strategy
from hushcube.strategies.wavelet import Wavelet
from hushcube.strategies.workload import AllCuboids, WorkloadTables

_TABLES: Final = Identity(), WorkloadTables(), Base(), AllCuboids(), BMax(), PMost(), Cluster()
_OTHERS: Final = Fourier(), Residual(), Wavelet(), Hierarchy(), Given(), Matrix(), Sketch(), Covering(), Levels()
REGISTRY: Final[dict[str, Strategy]] = {strategy.name: strategy for strategy in (*_TABLES, *_OTHERS)}
ALL: Final[dict[str, Strategy]] = {**REGISTRY, **ADAPTIVE, Selective.name: Selective()}
Choice = str | Strategy | Sequence[str | Strategy]
"""A strategy, or several to compare: objects, words such as `hierarchy:fan-out=4`, or `auto` and `all`."""
AUTO: Final = "auto"
EVERY: Final = "all"
_COMPARING: Final = (AUTO, EVERY)


def read_strategy(given: str | Strategy) -> Strategy:
    """The strategy that a word names.

    >>> read_strategy("hierarchy:fan-out=4")
    Hierarchy(fan_out=4)
    """
    if isinstance(given, Strategy):
        return given
    if not isinstance(given, str):
        raise BadInput("strategy", "is neither a word nor a strategy", "give for example `auto`")
    if (name := given.partition(":")[0].strip()) in NOT_PRIVATE:
        fix = "use it in `hushcube evaluate`, or choose ireduct"
        raise BadInput("strategy", f"{name} is not private: it chooses noise by the exact counts", fix)
    return read_word(given, ALL, "strategy", others=_COMPARING)


def read_strategies(given: Choice) -> tuple[list[Strategy], set[str]]:
    """The strategies that are named, and which of the words `auto` and `all` are among them."""
    several = [given] if isinstance(given, str | Strategy) else list(given)
    named = [read_strategy(one) for one in several if one not in _COMPARING]
    names = [strategy.name for strategy in named]
    if not several:
        raise BadInput("strategy", "none is given", "give for example `auto`")
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput("strategy", f"{twice[0]} is given twice", "compare it with other options in another plan")
    return named, {str(one) for one in several if one in _COMPARING}


def check_strategy(design: Design) -> None:
    """Refuse a plan whose strategy does not exist, or does not make such plans."""
    if isinstance(design, StackedDesign) and design.strategy == STACKED:  # what was measured: nobody plans it
        return
    strategy = ALL.get(design.strategy)
    if strategy is None:
        raise PlanError("plan, strategy", f"{design.strategy[:40]!r} is unknown", "plan again with a known strategy")
    if not isinstance(design, strategy.makes) or (
        strategy.name in ADAPTIVE and design.is_outcome and not design.privacy.is_pure
    ):
        raise PlanError("plan, strategy", f"{design.strategy} makes no such plans", "plan again")
