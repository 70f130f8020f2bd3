"""Releases as archives: the files that a manifest vouches for, and nothing else that may be in the folder."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Final

from hushcube.bundle.manifest import MANIFEST, check_files, read_manifest
from hushcube.errors import BadInput
from hushcube.ledger.charge import Charge
from hushcube.ledger.published import published_digest

_THEN: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the same release is the same archive."""


def is_release(charge: Charge) -> bool:
    """Whether what a charge published is a folder that is still there, with the digest that the ledger noted."""
    if charge.state != "published" or charge.place is None:
        return False
    folder = Path(charge.place)
    try:
        return (folder / MANIFEST).is_file() and published_digest(folder) == charge.bundle_digest
    except (BadInput, OSError):
        return False


def packed(folder: Path, into: Path, name: str) -> Path:
    """A release as an archive in a folder of the server's own, made once for what its manifest says now."""
    archive = into / f"{hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()}.zip"
    if not archive.exists():
        manifest = read_manifest(folder)
        check_files(folder, manifest)
        aside = archive.with_suffix(".part")
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as written:
            for file in sorted([MANIFEST, *manifest["checksums"]]):
                entry = zipfile.ZipInfo(f"{name}/{file}", _THEN)
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                written.writestr(entry, (folder / file).read_bytes())
        aside.rename(archive)
    return archive
