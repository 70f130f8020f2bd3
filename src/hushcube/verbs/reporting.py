"""`report` and `explore`: a release for people who read it in a browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

from hushcube.bundle.folder import open_bundle
from hushcube.bundle.release import Release
from hushcube.explorer.documents import Documents
from hushcube.explorer.page import write_report
from hushcube.explorer.shapes import Shapes
from hushcube.progress import Progress


def report(
    release: Release | str | Path,
    out: str | Path,
    *,
    targets: Sequence[str] = (),
    shapes: Shapes = (),
    verify: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Write a page about a release that works offline: one file if `out` ends in .html, otherwise a folder.

    `targets` are errors that were required, such as `age*sex: stderr<=20`: the page shows them beside the expected
    ones. `shapes` are GeoJSON files of attributes, such as `{"region": "regions.geojson"}`: the page draws maps with
    them. Of a folder, every checksum is verified unless told otherwise.
    """
    path = Path(out)
    write_report(Documents(_opened(release, verify), targets, shapes), path, progress=progress)
    return path


def explore(
    release: Release | str | Path,
    *,
    port: int = 0,
    browser: bool = True,
    targets: Sequence[str] = (),
    shapes: Shapes = (),
    verify: bool = True,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the same page on this machine, with any roll-up computed when it is asked for, until a signal asks to stop.

    Port 0 is any free port. The page is opened in a browser unless told otherwise; `ready` is called with its address
    once requests are accepted.
    """
    from hushcube.explorer.serving import serve_page

    def started(address: str) -> None:
        if ready is not None:
            ready(address)
        if browser:
            webbrowser.open(address)

    serve_page(lambda: Documents(_opened(release, verify), targets, shapes), port=port, ready=started)


def _opened(release: Release | str | Path, verify: bool) -> Release:
    return release if isinstance(release, Release) else open_bundle(Path(release).absolute(), verify=verify)
