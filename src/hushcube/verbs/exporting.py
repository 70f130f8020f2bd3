"""The verb `export`: tables of a release for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushcube.bundle.export.choosing import Chosen
from hushcube.bundle.export.formats import check_format, write_export
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.manifest import steadily
from hushcube.bundle.release import Release
from hushcube.faces.value import UNBIASED, published_name
from hushcube.progress import Progress, silent


def export(
    release: Release | str | Path,
    out: str | Path,
    format: str = "csv",  # noqa: A002 - the word of the command line
    *,
    tables: str | Sequence[str] | None = None,
    face: str = UNBIASED,
    progress: Progress | None = None,
) -> Path:
    """Write tables of a release as `csv`, `xlsx`, `json-stat`, `sdmx-csv` or `html`; returns where they are.

    `out` is a new folder; or a new file that ends in .xlsx, or that ends in the suffix of the format and holds one
    table. `tables` are words such as `1-way` or `age*sex`: published tables, or roll-ups of them; all that are
    published if they are left out. What is written is there whole or not at all.
    """
    export_tables(release, out, format, tables=tables, face=face, progress=progress)
    return Path(out)


def export_tables(
    release: Release | str | Path,
    out: str | Path,
    format: str,  # noqa: A002 - as above
    *,
    tables: str | Sequence[str] | None,
    face: str,
    progress: Progress | None,
) -> Chosen:
    """The same; returns the tables that were written."""
    place = Path(out)
    kind = check_format(format, place)

    def write(opened: Release) -> Chosen:
        chosen = Chosen.of(opened, tables, published_name(face))
        write_export(chosen, place, kind, progress or silent)
        return chosen

    if isinstance(release, Release):
        return write(release)
    folder = Path(release).absolute()
    return steadily(folder, lambda: write(open_bundle(folder)))
