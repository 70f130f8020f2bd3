"""index.html of a release: its tables as a page without scripts and requests, in light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

from hushcube.bundle.listing import Listing
from hushcube.bundle.statement import NOT_PRIVATE
from hushcube.text import visible


def front_page(listing: Listing, heading: str, links: Mapping[str, str]) -> str:
    """The text of index.html; `links` are files and what they hold. Whatever a text holds is shown as text."""
    schema = listing.plan.schema
    told = schema.description.split("\n") if schema.description and listing.is_whole else []
    stamp = "" if listing.private else f'<p class="stamp" role="note"><strong>{escape(NOT_PRIVATE)}</strong></p>\n'
    rows = (
        f'<tr><th scope="row"><a href="{escape(line.file)}">{_shown(line.title)}</a></th>'
        f"<td>{line.cells:,}</td><td>{line.std_error}</td></tr>\n"
        for line in listing.lines
    )
    return _PAGE.format(
        title=_shown(heading),
        stamp=stamp,
        about="".join(f"<p>{_shown(line)}</p>\n" for line in told if line.strip()),
        links="".join(
            f'<li><a href="{escape(file)}">{escape(file)}</a>: {_shown(what)}</li>\n' for file, what in links.items()
        ),
        rows="".join(rows),
        noun=_shown(schema.unit_noun),
    )


def _shown(text: str) -> str:
    return escape(visible(text))


_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
caption {{ text-align: left; padding: 0.5rem 0; }}
th, td {{ border-bottom: 1px solid #8888; padding: 0.3rem 0.8rem 0.3rem 0; text-align: right; }}
th:first-child {{ text-align: left; }}
tbody th {{ font-weight: normal; }}
.stamp {{ border: 2px solid; padding: 0.5rem; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{stamp}{about}<ul>
{links}</ul>
<div class="scroll" role="region" aria-label="Tables" tabindex="0">
<table>
<caption>Published tables of {noun}; the files are Parquet</caption>
<thead>
<tr><th scope="col">table</th><th scope="col">cells</th><th scope="col">standard error of a cell</th></tr>
</thead>
<tbody>
{rows}</tbody>
</table>
</div>
</main>
</body>
</html>
"""
