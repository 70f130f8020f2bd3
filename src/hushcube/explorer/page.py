"""The page: one HTML file that holds everything, or a folder whose tables are loaded when they are looked at.

It asks nobody for anything. Its Content-Security-Policy allows the scripts and styles that are in it, by their hashes,
and in a folder the files of tables beside it; no `eval`, no inline handlers, no other address.

What the page holds of a release is text and numbers: texts are JSON in which `<` is an escape, so that nothing in them
ends the element that holds them, and scripts set them as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Final

from hushcube.durable import check_file, new_file, new_folder
from hushcube.errors import MissingDependency, OutputError, TooLarge
from hushcube.explorer.documents import MOST_LISTED, Document, Documents
from hushcube.explorer.joining import joined
from hushcube.progress import Progress, silent

MOST_EMBEDDED: Final = 10_000_000
"""Bytes of tables that one file may hold."""
GROUP: Final = 200_000
"""Bytes of tables that are loaded together."""
_ESCAPED: Final = {"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_PARTS: Final = re.compile(
    r'<link rel="stylesheet" href="(?P<style>[\w.-]+)">'
    r'|<script type="application/json" id="(?P<id>[\w-]+)"(?: src="(?P<json>[\w.-]+)")?></script>'
    r'|<script(?: type="(?P<module>module)")? src="(?P<script>[\w.-]+)"></script>'
    r"|<title>[^<]*</title>"
)
POLICY: Final = {
    "default-src": "'none'",
    "img-src": "data: blob:",
    "base-uri": "'none'",
    "form-action": "'none'",
}


def write_report(documents: Documents, out: Path, *, progress: Progress | None = None) -> None:
    """Write the page of a release to a new file that ends in .html, or to a new folder."""
    is_file = out.suffix.lower() in (".html", ".htm")
    check_file(out, "out", *(("file", "files") if is_file else ("folder", "folders")))
    count = len(documents.index)
    if count > MOST_LISTED:
        fix = "look at it with `hushcube explore`, which finds tables by search, or export some: `--tables`"
        raise TooLarge("release", count, MOST_LISTED, fix, "tables")
    vega()  # if it is missing, that is said before any work
    catalogue = documents.catalogue()
    groups = _groups(documents, catalogue, progress or silent)
    first: list[str] = []
    while sum(map(len, first)) <= MOST_EMBEDDED and (group := next(groups, None)) is not None:
        first.append(group)
    is_large = sum(map(len, first)) > MOST_EMBEDDED
    if is_file and is_large:
        told = f"the tables take more than {MOST_EMBEDDED / 1e6:,.0f} MB, too much for one file"
        raise OutputError("out", told, "name a folder: without .html at its end")
    if is_file:
        with new_file(out) as file:
            file.write_text(_embedded(catalogue, first), encoding="utf-8")
        return
    with new_folder(out) as folder:
        page = _beside(catalogue, chain(first, groups), folder) if is_large else _embedded(catalogue, first)
        (folder / "index.html").write_text(page, encoding="utf-8")


def _embedded(catalogue: Document, groups: Sequence[str]) -> str:
    """The page with all tables in it."""
    blocks = {f"group-{at}": group for at, group in enumerate(groups)}
    return render(title_of(catalogue), {"mode": "embedded", "catalogue": catalogue}, blocks=blocks)[0]


def _beside(catalogue: Document, groups: Iterable[str], folder: Path) -> str:
    """The page of tables in files beside it, which are written as they come."""
    (folder / "data").mkdir()
    names = []
    for at, group in enumerate(groups):
        names.append(f"data/{at}.js")
        (folder / names[-1]).write_text(f"hushcubeGroup({at},{group});\n", encoding="utf-8")
    source = {"mode": "beside", "catalogue": catalogue, "files": names}
    return render(title_of(catalogue), source, loads="'self' file:")[0]


def _groups(documents: Documents, catalogue: Document, progress: Progress) -> Iterator[str]:
    """All tables as JSON, in groups of some size; their entries in the catalogue get the numbers of their groups."""
    held: list[str] = []
    entries, size, number = {entry["word"]: entry for entry in catalogue["tables"]}, 0, 0
    for at, (word, tables) in enumerate(documents.every()):
        progress("tables", at / len(entries))
        text = f"{as_json(word)}:{as_json([_shortened(table) for table in tables])}"
        if held and size + len(text) > GROUP:
            yield f"{{{','.join(held)}}}"
            held, size, number = [], 0, number + 1
        entries[word]["key"] = number
        held.append(text)
        size += len(text)
    yield f"{{{','.join(held)}}}"


def title_of(catalogue: Document) -> str:
    """What the page is called."""
    return str(catalogue["title"] or catalogue["name"])


def _shortened(table: Document) -> Document:
    """Without both ends of intervals where the margins say the same."""
    if table["margins"] is None:
        return table
    return {name: value for name, value in table.items() if name not in ("low", "high")}


def as_json(document: Any) -> str:
    """JSON that can stand in a script element, and is a script as well.

    >>> as_json({"label": "</script><!-- \\u2028"})
    '{"label":"\\\\u003c/script>\\\\u003c!-- \\\\u2028"}'
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text


def render(
    title: str,
    source: Mapping[str, Any],
    *,
    blocks: Mapping[str, str] | None = None,
    loads: str = "",
    connects: str = "'none'",
) -> tuple[str, str]:
    """The page with all of its parts in it, and its policy; `source` says where it finds the tables."""
    hashes: dict[str, list[str]] = {"script-src": [loads] if loads else [], "style-src": []}

    def part(found: re.Match[str]) -> str:
        if found["style"]:
            return f"<style>{_hashed(_read(found['style']), hashes['style-src'])}</style>"
        if found["id"]:
            text = as_json(source) if found["id"] == "source" else as_json(json.loads(_read(found["json"])))
            return f'<script type="application/json" id="{found["id"]}">{text}</script>'
        if found["script"]:
            return f"<script>{_hashed(_script(found['script']), hashes['script-src'])}</script>"
        return f"<title>{html.escape(title)}</title>"

    page = _PARTS.sub(part, _read("index.html"))
    data = "".join(f'<script type="application/json" id="{name}">{t}</script>\n' for name, t in (blocks or {}).items())
    # the policy is the first thing in the page: nothing before it is looked at without it
    told = {**POLICY, "connect-src": connects, **{name: " ".join(each) or "'none'" for name, each in hashes.items()}}
    policy = "; ".join(f"{name} {value}" for name, value in told.items())
    meta = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    page = page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{meta}', 1)
    start, mark, end = page.rpartition("</body>") if data else (page, "", "")
    return f"{start}{data}{mark}{end}", policy


def _script(name: str) -> str:
    return vega() if name == "vega.js" else joined(name, _read)


def _hashed(text: str, hashes: list[str]) -> str:
    """The text of a script or style as it stands in the page; its hash goes to a list."""
    text = re.sub(r"<(?=/script|!--)", r"\\x3C", text, flags=re.IGNORECASE)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    hashes.append(f"'sha256-{digest}'")
    return text


def _read(name: str) -> str:
    return (files("hushcube.explorer") / "app" / name).read_text(encoding="utf-8")


@cache
def vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script, from the package that carries them."""
    try:
        import vl_convert
    except ImportError:
        raise MissingDependency("vl-convert-python", "reports", "report") from None
    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg] # its stub does not say what may be left out
    return f"(() => {{{bundle}}})();"
