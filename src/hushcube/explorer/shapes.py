"""Shapes for maps, which a publisher may give beside a release: a GeoJSON file for an attribute, or for a level of one.

Shapes are no part of a release and nothing that was measured. Each feature must name one value of the attribute, by its
`id` or by one of its properties; which one is found by looking at all of them. What a page gets is geometry alone, in a
plane: longitude λ and latitude φ become

    x = λ cos φ0,   y = φ,       φ0 the middle of all latitudes,                          (equirectangular projection)

which is right enough for a country; coordinates that are no degrees are taken as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hushcube.errors import BadInput, WorkloadError
from hushcube.model.attribute import Attribute
from hushcube.model.files import read_json
from hushcube.model.schema import Schema

Ring = list[tuple[float, float]]
Polygon = list[Ring]
Drawn = dict[str, Any]
"""For each label of an axis a geometry and a place for its text, or null: `{type, coordinates, at}`."""

Shapes = Mapping[str, str | Path] | Sequence[str]
"""Attributes and their files: `{"region": "regions.geojson"}`, or `["region=regions.geojson"]`."""

LONGEST: Final = 20_000_000
"""Bytes of a file of shapes."""
_DIGITS: Final = 5  # of coordinates, relative to the extent of all shapes
_FIX: Final = "give a GeoJSON FeatureCollection of polygons, one for each value of the attribute"


def read_shapes(given: Shapes, schema: Schema) -> dict[str, list[Drawn | None]]:
    """For each attribute that has shapes, such as `region=regions.geojson`, those of its labels in their order."""
    return {name: _shapes(_seen(name, schema), file) for name, file in _pairs(given)}


def _pairs(given: Shapes) -> Iterator[tuple[str, Path]]:
    if isinstance(given, Mapping):
        yield from ((name, Path(file)) for name, file in given.items())
        return
    for word in given:
        name, equals, file = word.partition("=")
        if not equals or not name.strip() or not file.strip():
            raise BadInput("shapes", f"{word[:80]!r} is not an attribute and a file", "write region=regions.geojson")
        yield name.strip(), Path(file.strip())


def _seen(name: str, schema: Schema) -> Attribute:
    try:
        return schema.declared.seen(name)
    except WorkloadError as problem:
        raise BadInput("shapes", problem.problem, problem.fix) from None


def _shapes(attribute: Attribute, file: Path) -> list[Drawn | None]:
    field = f"shapes of {attribute.name!r}"
    features = _features(file, field)
    of_label = _matched(attribute, features, field)
    polygons = {at: _polygons(features[feature], field) for at, feature in of_label.items()}
    points = [point for own in polygons.values() for polygon in own for ring in polygon for point in ring]
    (left, right), (low, high) = ((min(axis), max(axis)) for axis in zip(*points, strict=True))
    is_globe = max(abs(left), abs(right)) <= 180 and max(abs(low), abs(high)) <= 90
    across = math.cos(math.radians((low + high) / 2)) if is_globe else 1.0
    size = max((right - left) * across, high - low) or 1.0
    digits = _DIGITS - 1 - math.floor(math.log10(size))

    def placed(polygon: Polygon) -> Polygon:
        return [[(round(x * across, digits), round(y, digits)) for x, y in ring] for ring in polygon]

    found: list[Drawn | None] = [None] * attribute.size
    for at, own in polygons.items():
        flat = [placed(polygon) for polygon in own]
        largest = max(flat, key=lambda polygon: abs(_area(polygon[0])))
        found[at] = {"type": "MultiPolygon", "coordinates": flat, "at": _middle(largest[0])}
    return found


def _features(file: Path, field: str) -> list[Mapping[str, Any]]:
    try:
        if file.stat().st_size > LONGEST:
            raise BadInput(field, f"{str(file)[:200]!r} has more than {LONGEST / 1e6:,.0f} MB", "give simpler shapes")
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise BadInput(field, f"{str(file)[:200]!r} cannot be read", "name a GeoJSON file, in UTF-8") from None
    read = read_json(text, field, BadInput, _FIX)
    features = read.get("features") if isinstance(read, dict) else None
    if not isinstance(features, list) or not features or not all(isinstance(each, dict) for each in features):
        raise BadInput(field, "there are no features in the file", _FIX)
    return features


def _matched(attribute: Attribute, features: Sequence[Mapping[str, Any]], field: str) -> dict[int, int]:
    """The feature of each label, by the `id` or the property that holds most of the values of the attribute."""
    known = {text: at for texts in (attribute.coded, attribute.labels) for at, text in enumerate(texts)}
    names = dict.fromkeys(name for each in features for name in (each.get("properties") or {}))
    readings = [[_text(each.get("id")) for each in features]]
    readings += [[_text((each.get("properties") or {}).get(name)) for each in features] for name in names]
    best = max(readings, key=lambda texts: len(known.keys() & set(texts)))
    found: dict[int, int] = {}
    for feature, text in enumerate(best):
        at = known.get(text)
        if at in found:
            raise BadInput(field, f"{text[:80]!r} has two features", "give one feature for each value")
        if at is not None:
            found[at] = feature
    missing = [label for at, label in enumerate(attribute.labels) if at not in found]
    if not found or len(missing) > max(1, attribute.size // 2):
        raise BadInput(
            field,
            f"no property names its values: {missing[0]!r} has no feature",
            "give each feature an `id`, or a property, with the value or label of the attribute",
        )
    return found


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _polygons(feature: Mapping[str, Any], field: str) -> list[Polygon]:
    geometry = feature.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if not isinstance(geometry, dict) or kind not in ("Polygon", "MultiPolygon"):
        raise BadInput(field, f"a feature is no polygon: {str(kind)[:40]}", _FIX)
    coordinates = geometry.get("coordinates")
    polygons = [coordinates] if kind == "Polygon" else coordinates
    try:
        found = [[[_point(point) for point in ring] for ring in polygon] for polygon in _listed(polygons)]
    except (TypeError, ValueError):
        raise BadInput(field, "a polygon is no list of rings of points", _FIX) from None
    if not found or not all(polygon and all(len(ring) >= 4 for ring in polygon) for polygon in found):
        raise BadInput(field, "a polygon has no rings, or a ring of fewer than four points", _FIX)
    return found


def _listed(found: Any) -> Iterable[Any]:
    if not isinstance(found, list):
        raise TypeError
    return found


def _point(point: Any) -> tuple[float, float]:
    x, y, *_ = _listed(point)
    if not all(isinstance(each, int | float) and abs(each) < 1e12 for each in (x, y)):
        raise ValueError
    return float(x), float(y)


def _area(ring: Ring) -> float:
    """Twice the signed area of a ring."""
    return math.fsum(x * v - u * y for (x, y), (u, v) in zip(ring, [*ring[1:], ring[0]], strict=True))


def _middle(ring: Ring) -> tuple[float, float]:
    """The centroid of a ring.

    >>> _middle([(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0), (0.0, 0.0)])
    (1.0, 1.0)
    """
    area = _area(ring)
    if not area:
        return ring[0]
    pairs = list(zip(ring, [*ring[1:], ring[0]], strict=True))
    return (
        math.fsum((x + u) * (x * v - u * y) for (x, y), (u, v) in pairs) / (3 * area),
        math.fsum((y + v) * (x * v - u * y) for (x, y), (u, v) in pairs) / (3 * area),
    )
