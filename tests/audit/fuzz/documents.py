"""Trees of JSON and YAML with single fields changed: types exchanged, keys repeated, values from elsewhere."""

import copy
import json
from random import Random
from typing import Any

import yaml

from audit.fuzz.hostile import TOKENS, YAML_TOKENS, anything, scribble


class Key(str):
    """A key that does not equal its twin, so that a mapping can hold it twice."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


class Token(str):
    """A text that is written as it stands, without quotes."""

    __slots__ = ()


def written(tree: Any) -> str:
    """JSON text of a tree; its tokens, twins and lone surrogates included."""
    tokens: list[str] = []

    def plain(node: Any) -> Any:
        if isinstance(node, Token):
            tokens.append(str(node))
            return f"@token{len(tokens) - 1}@"
        if isinstance(node, dict):
            return {key: plain(value) for key, value in node.items()}
        return [plain(value) for value in node] if isinstance(node, list | tuple) else node

    text = json.dumps(plain(tree), ensure_ascii=False)
    for number, token in enumerate(tokens):
        text = text.replace(f'"@token{number}@"', token, 1)
    return text.encode("utf-8", "backslashreplace").decode()


def as_yaml(rng: Random, tree: Any) -> str:
    """The tree as a YAML file: in flow style, which is JSON, or in blocks where it is plain."""
    if rng.random() < 0.5:
        try:
            return yaml.safe_dump(tree, sort_keys=False, allow_unicode=rng.random() < 0.5)
        except (yaml.YAMLError, ValueError):
            pass
    return written(tree)


def changed(rng: Random, tree: Any, *, yaml_too: bool = False) -> Any:
    """A copy with one to three places changed."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        tree = _change(rng, tree, YAML_TOKENS if yaml_too else TOKENS)
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container with a key of it."""
    if isinstance(tree, dict):
        keys: list[Any] = list(tree)
    elif isinstance(tree, list):
        keys = list(range(len(tree)))
    else:
        return []
    return [(tree, key) for key in keys] + [place for key in keys for place in _places(tree[key])]


def _change(rng: Random, tree: Any, tokens: tuple[str, ...]) -> Any:
    places = _places(tree)
    if not places or rng.random() < 0.01:
        return Token(rng.choice(tokens))
    box, key = rng.choice(places)
    value = box[key]
    kind = rng.randrange(12)
    if kind <= 2:
        box[key] = anything(rng)
    elif kind == 3:
        box[key] = Token(rng.choice(tokens))
    elif kind == 4:
        del box[key]
    elif kind == 5:
        other, place = rng.choice(places)
        box[key] = copy.deepcopy(other[place])
    elif kind == 6:
        box[key] = rng.choice(([value], {"x": value}, [value, value], {str(key): value}, str(value), repr(value)))
    elif kind == 7 and isinstance(value, int | float):
        box[key] = rng.choice(
            (-value, value + 1, value * 2, value / 3, float(value), str(value), bool(value), value * 10**6)
        )
    elif kind in (7, 8) and isinstance(value, str):
        box[key] = scribble(rng, value)
    elif kind == 9 and isinstance(box, dict):
        box[Key(key)] = rng.choice((value, anything(rng)))
    elif kind == 10 and isinstance(box, dict):
        box[rng.choice((scribble(rng, str(key)), "x", "", "__proto__", "name", "attributes"))] = box.pop(key)
    elif isinstance(box, list):
        box.insert(rng.randrange(len(box) + 1), rng.choice((copy.deepcopy(value), anything(rng))))
    else:
        box[rng.choice(("x", "", "name", "size", "0", "zeros"))] = anything(rng)
    return tree
