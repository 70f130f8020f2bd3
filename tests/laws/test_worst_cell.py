"""Picking for the worst cell: the order of attributes is irrelevant, weights count, and no table starves."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import NEIGHBOURS, Counts, adaptive, make_schema
from hushcube import Attribute, Schema, plan
from hushcube.private.adaptive.ireduct import choose_levels, draw_paths
from hushcube.private.adaptive.paths import Path
from hushcube.private.adaptive.picking import LAG
from hushcube.private.adaptive.run import prepared
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy


def path_of(dense):
    levels, cells = np.nonzero(dense[1:] != dense[:-1])
    return Path(dense[0], levels + 1, cells, dense[levels, cells], dense[levels + 1, cells])


def subject_of(schema, codes, words, given_):
    rule = {"pick": "worst", "lambda_factor": "0.9", **given_}
    asked = {"epsilon": rule.pop("epsilon"), "neighbours": rule.pop("neighbours")}
    made = plan(schema, words, strategy=adaptive("ireduct", **rule), recovery="none", **asked).count
    return prepared(made, Counts(schema, codes), SeededEntropy(0))


def decided(subject, seed):
    """The paths of every table by its attributes' names, and how far it goes."""
    grids = subject.grids()
    paths = draw_paths(subject, grids, SeededEntropy(seed), lambda *_: None)
    return grids, paths, choose_levels(subject, grids, paths)[0]


def tables_of(subject):
    schema = subject.start.schema
    return [tuple(schema.names[i] for i in tuple(subject.start.measured)[at]) for at in subject.chosen.tolist()]


@pytest.mark.slow
@given(
    sizes=st.lists(st.integers(2, 5), min_size=2, max_size=5),
    order=st.randoms(use_true_random=False),
    words=st.sampled_from(["1-way", "2-way", "1..2-way", "1-way=0.2,2-way"]),
    delta=st.sampled_from([1, 5, 50]),
    epsilon=st.sampled_from(["0.02", "0.3", "2"]),
    neighbours=st.sampled_from(NEIGHBOURS),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=120)
def test_the_order_of_attributes_is_irrelevant(sizes, order, words, delta, epsilon, neighbours, seed):
    """With the same noisy answers in the places of a reordered schema, every table gets the same noise."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, n, 3000) * rng.integers(0, 2, 3000) for n in sizes], axis=1)
    attributes = [Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)]
    asked = {"sanity_bound": delta, "epsilon": epsilon, "neighbours": neighbours}
    first = subject_of(Schema(tuple(attributes), "one"), codes, words, asked)
    places = list(range(len(sizes)))
    order.shuffle(places)
    second = subject_of(Schema(tuple(attributes[i] for i in places), "two"), codes[:, places], words, asked)
    grids, paths, levels = decided(first, seed)
    known = dict(zip(tables_of(first), zip(paths, levels.tolist(), strict=True), strict=True))
    theirs, moved, expected = second.grids(), [], []
    for names, grid in zip(tables_of(second), theirs, strict=True):
        own = tuple(sorted(names))
        path, level = known[own]
        dense = np.stack([path.at(at) for at in range(len(grid))])
        shape = [sizes[int(name[1:])] for name in own]
        turned = dense.reshape(-1, *shape).transpose(0, *(1 + own.index(name) for name in names))
        moved.append(path_of(turned.reshape(len(grid), -1)))
        expected.append(level)
    assert [grid.rates.tolist() for grid in theirs] == [grids[0].rates.tolist()] * len(theirs)
    assert choose_levels(second, theirs, moved)[0].tolist() == expected


@given(st.integers(0, 10**6), st.sampled_from(["0.01", "0.1"]))
@settings(max_examples=40)
def test_no_table_of_small_counts_is_left_behind(seed, epsilon):
    """Nine tables that noise drowns: each has a share of what even noise would give it, wherever it stands."""
    rng = np.random.default_rng(seed)
    codes = (rng.random((400, 9)) ** 3 * 6).astype(int)
    subject = subject_of(
        make_schema((6,) * 9), codes, "1-way", {"sanity_bound": 1, "epsilon": epsilon, "neighbours": "add-remove"}
    )
    grids, _, levels = decided(subject, seed)
    rates = np.array([grid.rates[level] for grid, level in zip(grids, levels, strict=True)])
    assert (rates * LAG > subject.even_rate * 0.9).all()


@given(st.permutations(range(5)), st.sampled_from(["0.02", "0.3", "2"]), st.integers(0, 500))
@settings(max_examples=60)
def test_tables_that_look_the_same_take_turns(places, epsilon, answer):
    """None is more than a step ahead while priorities fall, and which ones are does not depend on the order."""
    attributes, codes = [Attribute(name=f"a{i}", codes=4) for i in range(5)], np.zeros((300, 5), int)
    asked = {"sanity_bound": 5, "epsilon": epsilon, "neighbours": "add-remove"}
    found = []
    for order in (range(5), places):
        subject = subject_of(Schema(tuple(attributes[i] for i in order), "data"), codes, "1-way", asked)
        grids = subject.grids()
        seen = path_of(np.full((len(grids[0]), 4), answer))
        levels = choose_levels(subject, grids, [seen] * 5)[0].tolist()
        assert max(levels) - min(levels) <= 1
        found.append(dict(zip(tables_of(subject), levels, strict=True)))
    assert found[0] == found[1]


@pytest.mark.parametrize("surplus", [-3000, 3000])
@pytest.mark.parametrize("odd", range(4))
def test_a_table_whose_sum_shows_noise_gets_less_of_it(odd, surplus):
    """Four tables of large counts that look the same, but one of them adds up to less or more than the others.

    By how much depends on what the others' sums are worth by then. Before, tables that look the same took turns.
    """
    subject = subject_of(
        make_schema((2,) * 4),
        np.zeros((300, 4), int),
        "1-way",
        {"sanity_bound": 5, "epsilon": "0.1", "neighbours": "add-remove"},
    )
    grids = subject.grids()
    answers = [np.array([50_000, 50_000 + (surplus if j == odd else 0)]) for j in range(4)]
    paths = [path_of(np.tile(y, (len(grid), 1))) for y, grid in zip(answers, grids, strict=True)]
    levels = choose_levels(subject, grids, paths)[0].tolist()
    assert levels[odd] > 1 + max(level for j, level in enumerate(levels) if j != odd)


@pytest.mark.parametrize("strategy", ["twophase", "iresamp", "ireduct"])
def test_a_table_of_more_weight_gets_less_noise(strategy):
    """Alike but for their weights, on average over seeds; before, weights did not count."""
    schema, spent = make_schema((8, 8, 8)), []
    codes = (np.random.default_rng(1).random((500, 3)) ** 2 * 8).astype(int)
    chosen = adaptive(strategy, sanity_bound=2, pick="worst")
    made = plan(schema, "a0,a1=50,a2", strategy=chosen, recovery="none", epsilon="0.2", neighbours="add-remove")
    for seed in range(12):
        ended, _ = draw(made.count, Counts(schema, codes), entropy=SeededEntropy(seed))
        spent.append(np.bincount(getattr(ended, "sample_of", range(len(ended.budgets))), weights=ended.budgets))
    mean = np.mean(spent, axis=0)
    assert mean[1] > 1.5 * mean[0] and mean[1] > 1.5 * mean[2]
    assert mean[0] == pytest.approx(mean[2], rel=0.3)
