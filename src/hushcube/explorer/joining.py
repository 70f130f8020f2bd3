"""The scripts of the page as one: a page that is opened from a file cannot import modules.

Each module becomes a function that is called once, after those that it imports, and whose result holds what it exports:

    import { Cube as C } from "./cube.js";          const { Cube: C } = cube_js;
    export function draw() {}                       function draw() {}   ...   return { draw };

That is all of the module syntax that the page uses; anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const|let) (\w+))", re.MULTILINE)
_OTHER: Final = re.compile(r"^\s*(?:import|export)\b(?!\()", re.MULTILINE)


def joined(entry: str, read: Callable[[str], str]) -> str:
    """One script that does what a module and all those that it imports do.

    >>> files = {"a.js": 'import { b } from "./b.js";\\nshow(b);', "b.js": "export const b = 1;"}
    >>> print(joined("a.js", files.__getitem__))
    "use strict";
    const b_js = (() => {
    const b = 1;
    return { b };
    })();
    const a_js = (() => {
    const { b } = b_js;
    show(b);
    return {  };
    })();
    """
    found: dict[str, str] = {}
    _add(entry, read, found, ())
    return "\n".join(['"use strict";', *found.values()])


def _add(name: str, read: Callable[[str], str], found: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"{' imports '.join((*above, name))}")
    if name in found:
        return
    text = read(name).strip()
    for imported in _IMPORT.finditer(text):
        _add(imported[2], read, found, (*above, name))
    exported = _EXPORT.findall(text)
    body = _EXPORT.sub("", _IMPORT.sub(_taken, text))
    if (other := _OTHER.search(body)) is not None:
        raise ValueError(f"{name}: {body[other.start() :].strip().splitlines()[0]!r} cannot be joined")
    found[name] = f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _taken(imported: re.Match[str]) -> str:
    names = " ".join(imported[1].split()).rstrip(",").replace(" as ", ": ")
    return f"const {{ {names} }} = {_variable(imported[2])};"


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name)
