"""The file that labels were read from: they are published, so readers see where they come from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushcube.errors import SchemaError
from hushcube.model.label import is_label


@dataclass(frozen=True)
class LabelFile:
    """A mapping file as it was read: its name beside the schema, its size and its checksum.

    >>> LabelFile.of("m.csv", "code,chapter\\n").size
    13
    """

    name: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        is_size = type(self.size) is int and self.size >= 0
        is_sum = isinstance(self.sha256, str) and re.fullmatch("[0-9a-f]{64}", self.sha256) is not None
        if not is_label(self.name) or not is_size or not is_sum:
            raise SchemaError("labels", "do not say correctly which file they come from", "leave the key out")

    @classmethod
    def of(cls, name: str, text: str) -> LabelFile:
        """A file by its content."""
        content = text.encode("utf-8")
        return cls(name, len(content), hashlib.sha256(content).hexdigest())

    def is_copied(self, path: Path) -> bool:
        """Whether another file has the same content."""
        if path.stat().st_size != self.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256

    def to_dict(self) -> dict[str, Any]:
        """The YAML form."""
        return {"file": self.name, "bytes": self.size, "sha256": self.sha256}

    @classmethod
    def from_dict(cls, raw: Any) -> LabelFile | None:
        """Read the YAML form."""
        if raw is None:
            return None
        if not isinstance(raw, Mapping) or raw.keys() != {"file", "bytes", "sha256"}:
            raise SchemaError("labels", "do not say correctly which file they come from", "leave the key out")
        return cls(raw["file"], raw["bytes"], raw["sha256"])
