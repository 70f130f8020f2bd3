"""A marginal is a set of attributes: their positions in the schema, increasing. The empty one is the total."""

from __future__ import annotations

Marginal = tuple[int, ...]
