"""Steps in the order of their priorities, for as long as the budget allows: the loop of Figure 4, all at once.

A step that does not fit takes its table out of the race; cheaper steps of others go on.   [Xiao et al. 2011, line 16]
Rates only grow, and so does their cost: how many steps of the order fit is found by bisection, with exact costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hushcube.model.arrays import Floats, Ints


def walk(priorities: Sequence[Floats], fits: Callable[[Ints], bool]) -> Ints:
    """How many steps each table takes: `priorities[j][k]` is that of table j's step k, `fits(levels)` the budget.

    >>> steps = walk([np.array([5.0, 1.0]), np.array([3.0, 4.0])], lambda levels: levels.sum() <= 3)
    >>> steps.tolist()  # 5 of the first, then 3 and at once 4 of the second
    [1, 2]
    """
    table = np.repeat(np.arange(len(priorities)), [len(p) for p in priorities])
    key = np.concatenate([np.minimum.accumulate(p) for p in priorities] or [np.zeros(0)])
    order = table[np.argsort(-key, kind="stable")]  # equal priorities: the first table, and its own steps in sequence
    taken = np.zeros(len(priorities), np.int64)
    while order.size:
        count = _most(order, taken, fits)
        taken = _after(order, taken, count)
        if count == order.size:
            break
        refused = order[count]
        order = order[count:][order[count:] != refused]
    return taken


def _after(order: Ints, taken: Ints, count: int) -> Ints:
    return taken + np.bincount(order[:count], minlength=len(taken))


def _most(order: Ints, taken: Ints, fits: Callable[[Ints], bool]) -> int:
    """The most steps of the order that fit together: gallop, then bisect."""
    low, high = 0, 1
    while high <= order.size and fits(_after(order, taken, high)):
        low, high = high, 2 * high
    high = min(high, order.size + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(_after(order, taken, middle)):
            low = middle
        else:
            high = middle
    return low
