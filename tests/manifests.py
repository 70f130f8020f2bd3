"""What tests of bundles share: read a manifest, and seal it again as whoever changed files would."""

import json

from hushcube.bundle.manifest import manifest_text
from hushcube.bundle.reading import checksum


def manifest_of(folder):
    """The manifest of a release."""
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def resealed(folder, manifest, *files):
    """Write a manifest with the sums and sizes that files have now."""
    for name in files:
        manifest["checksums"][name], manifest["sizes"][name] = checksum(folder, name), (folder / name).stat().st_size
    (folder / "manifest.json").write_text(manifest_text(manifest), encoding="utf-8")
