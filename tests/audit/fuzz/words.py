"""The small languages of options, by their grammars: workloads, targets, conditions, shares, measures."""

from random import Random

from audit.fuzz.hostile import NUMBERS, TEXTS, scribble
from audit.fuzz.subjects import Subject


def workload(rng: Random, who: Subject) -> str:
    """Workload words, mostly ones that can be read."""
    text = ",".join(_word(rng, who) for _ in range(rng.choice((1, 1, 2))))
    return scribble(rng, text) if rng.random() < 0.1 else text


def _word(rng: Random, who: Subject) -> str:
    few = rng.randint(0, len(who.names)) if rng.random() < 0.95 else 9
    word = rng.choice(
        (
            lambda: f"{few}-way",
            lambda: f"<={few}-way",
            lambda: f"{rng.choice((0, 0, 1))}..{few}-way",
            lambda: rng.choice(("cube", "cube", "total", "queries")),
            lambda: f"star:{few}",
            lambda: f"anchored:{few}:{rng.choice(who.names)}",
            lambda: _product(rng, who),
            lambda: _product(rng, who),
            lambda: _product(rng, who),
        )
    )()
    if rng.random() < 0.1:
        word += f"={rng.choice(('2', '0.5', '1e300', '1e-300', rng.choice(NUMBERS)))}"
    return word


def _product(rng: Random, who: Subject) -> str:
    chosen = rng.sample(who.names, rng.randint(1, min(2, len(who.names))))
    factors = []
    for name in chosen:
        word = f"{name}@{rng.choice(who.levels[name])}" if who.levels.get(name) and rng.random() < 0.3 else name
        if rng.random() < (0.3 if name in who.ordered else 0.02):
            word = f"{rng.choice(('prefix', 'ranges'))}({word})"
        factors.append(word)
    if rng.random() < 0.03:
        factors.append(rng.choice((*factors, *TEXTS)))
    return "*".join(factors)


def target(rng: Random, who: Subject) -> str:
    """A bound on an error."""
    words = rng.choice(("workload", "total", _word(rng, who), _product(rng, who)))
    bound = rng.choice(("20", "5", "1e-6", "1e9", rng.choice(NUMBERS)))
    text = f"{words}: {rng.choice(('stderr', 'margin', 'variance', 'rmse', 'rmse', 'x'))}<={bound}"
    return scribble(rng, text) if rng.random() < 0.1 else text


def condition(rng: Random, who: Subject) -> str:
    """What `--where` takes."""
    name = rng.choice(who.names)
    label = rng.choice((*who.labels[name], rng.choice(TEXTS)))
    text = f"{name}={label}"
    return scribble(rng, text) if rng.random() < 0.1 else text


def measure(rng: Random, who: Subject) -> str:
    """What `--measure` takes."""
    name = rng.choice(who.measures) if rng.random() < 0.9 else rng.choice(("count", rng.choice(TEXTS)))
    text = rng.choice((f"sum({name})", f"avg({name})", f"sum({name}),avg({name})", f"count,avg({name})"))
    return scribble(rng, text) if rng.random() < 0.1 else text


def shares(rng: Random, who: Subject) -> str:
    """What `--shares` takes."""
    parts = ["count", *who.measures]
    text = ",".join(f"{name}={rng.choice(('0.5', '1/3', '0.1', rng.choice(NUMBERS)))}" for name in parts)
    return scribble(rng, text) if rng.random() < 0.2 else text
