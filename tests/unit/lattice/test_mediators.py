"""Pairs that a third attribute explains."""

import itertools

import numpy as np
import pytest

from hushcube.lattice.family import Family
from hushcube.lattice.guesses import guesses
from hushcube.lattice.mediators import apart, by_mediators, unexplained

SIZES = (3, 4, 2, 5)


class Summed:
    """Tables of a full table."""

    def __init__(self, full):
        self.full = full

    def tables(self, rows, shape):
        out = []
        for row in rows.tolist():
            assert row == sorted(row), "tables are kept in the order of the attributes"
            out.append(self.full.sum(axis=tuple(a for a in range(self.full.ndim) if a not in row)))
        return np.array(out).reshape(len(rows), *shape)


def pairs_of(full):
    people, pairs = full.sum(), Family.of(list(itertools.combinations(range(full.ndim), 2)), full.shape)
    independent = guesses(pairs, Summed(full), people)
    return pairs, independent, apart(pairs, independent, Summed(full))


def table_of(pairs, blocks, pair):
    return next(
        block[batch.rows.tolist().index(list(pair))]
        for batch, block in zip(pairs.batches, blocks, strict=True)
        if list(pair) in batch.rows.tolist()
    )


def chain(rng, sharp=0.3):
    """Attribute 1 decides over all others: given it, they are independent."""
    first = rng.dirichlet(np.ones(SIZES[1]))
    given = [rng.dirichlet(np.full(n, sharp), size=SIZES[1]) for n in (SIZES[0], SIZES[2], SIZES[3])]
    return 10_000 * np.einsum("m,ma,mb,mc->ambc", first, *given)


def test_what_a_third_attribute_decides_is_guessed_exactly():
    full = chain(np.random.default_rng(1))
    pairs, independent, misfits = pairs_of(full)
    better, explained = by_mediators(pairs, independent, Summed(full), misfits)
    at = {tuple(row): i for i, row in enumerate(pairs.levels[2].tolist())}
    for pair in ((0, 2), (0, 3), (2, 3)):
        exact = Summed(full).tables(np.array([pair]), [SIZES[i] for i in pair])[0]
        assert table_of(pairs, better, pair) == pytest.approx(exact, rel=1e-9, abs=0.2)
        assert explained[at[pair]] == pytest.approx(misfits[at[pair]], rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_attributes_is_found_and_explains_no_more_than_its_parts_allow(seed):
    """Brute force over every third attribute; data processing bounds what each explains."""
    full = np.random.default_rng(seed).gamma(0.3, 10.0, SIZES)
    pairs, independent, misfits = pairs_of(full)
    better, explained = by_mediators(pairs, independent, Summed(full), misfits)
    s = {tuple(row): misfits[i] for i, row in enumerate(pairs.levels[2].tolist())}

    def pair(i, j):
        x = Summed(full).tables(np.array([sorted((i, j))]), [SIZES[a] for a in sorted((i, j))])[0]
        return x if i < j else x.T

    for at, (i, j) in enumerate(pairs.levels[2].tolist()):
        found = {}
        for m in set(range(4)) - {i, j}:
            x = (pair(i, m) / pair(i, m).sum(axis=0)) @ pair(m, j)
            found[m] = np.abs(x - table_of(pairs, independent, (i, j))).sum() / full.sum()
            assert found[m] <= min(s[tuple(sorted((i, m)))], s[tuple(sorted((m, j)))]) + 1e-4
        best = max(found, key=found.get)
        assert explained[at] == pytest.approx(found[best], abs=1e-6)
        x = (pair(i, best) / pair(i, best).sum(axis=0)) @ pair(best, j)
        assert table_of(pairs, better, (i, j)) == pytest.approx(x, rel=1e-6, abs=1e-2)
        assert table_of(pairs, better, (i, j)).sum(axis=1) == pytest.approx(pair(i, j).sum(axis=1), rel=0.01, abs=0.1)


def test_a_pair_without_a_third_attribute_keeps_its_guess():
    full = np.random.default_rng(3).gamma(1.0, 10.0, (3, 4))
    pairs, independent, misfits = pairs_of(full)
    better, explained = by_mediators(pairs, independent, Summed(full), misfits)
    assert better[0] == pytest.approx(independent[0])
    assert explained.tolist() == [0.0]


def test_pairs_that_are_not_there_explain_nothing():
    full = chain(np.random.default_rng(5))
    pairs = Family.of([(0, 1), (0, 2)], SIZES)
    independent = guesses(pairs, Summed(full), full.sum())
    _, explained = by_mediators(pairs, independent, Summed(full), apart(pairs, independent, Summed(full)))
    assert (explained == 0).all()


def test_half_of_a_misfit_is_left_at_least():
    left = unexplained(np.array([0.0, 0.6, 1.0, 2.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    assert left.tolist() == [1.0, 0.8, 0.5, 0.5, 1.0]
