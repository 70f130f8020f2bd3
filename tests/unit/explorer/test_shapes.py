"""Shapes that a publisher gives for maps: matched by values or labels, checked, reduced to geometry in a plane."""

import json
import math

import pytest

import hushcube as hc
from hushcube.explorer.shapes import read_shapes

SCHEMA = hc.Schema(
    [
        hc.Attribute(
            "region",
            codes=3,
            labels={0: "north", 1: "south", 2: "isles"},
            missing="unknown",
            levels=[{"name": "land", "groups": {"main": ["0", "1"], "off": ["2"]}}],
        ),
        hc.Attribute("sex", values=["F", "M"]),
    ]
)


def square(x, y, size=1.0):
    return [[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]


def feature(geometry, **fields):
    return {"type": "Feature", "geometry": geometry, **fields}


def polygon(*rings):
    return {"type": "Polygon", "coordinates": list(rings)}


def written(tmp_path, *features, name="shapes.geojson"):
    path = tmp_path / name
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path


def places(drawn):
    return [None if each is None else tuple(round(x, 2) for x in each["at"]) for each in drawn]


BOXES = [polygon(square(0, 10)), polygon(square(0, 0)), polygon(square(5, 5), square(5.2, 5.2, 0.2))]
MIDDLES = [(0.5, 10.5), (0.5, 0.5), (5.5, 5.5)]


@pytest.mark.parametrize("by", ["id", "number", "label"])
def test_features_are_matched_by_id_or_property_in_any_order(tmp_path, by):
    words = {"id": ["0", "1", "2"], "number": [0, 1, 2], "label": ["north", "south", "isles"]}[by]
    told = [{"id": word} if by == "id" else {"properties": {"area": "x", "code": word}} for word in words]
    shapes = [feature(box, **own) for box, own in zip(BOXES, told, strict=True)]
    (drawn,) = read_shapes([f"region = {written(tmp_path, *shapes[::-1])}"], SCHEMA).values()
    across = math.cos(math.radians(5.5))
    assert places(drawn) == [*((round(x * across, 2), y) for x, y in MIDDLES), None]
    assert len(drawn[2]["coordinates"][0]) == 2, "holes are kept"
    assert "x" not in json.dumps(drawn), "properties are not"


def test_levels_have_shapes_of_their_own_and_other_coordinates_stay(tmp_path):
    shapes = [feature(polygon(square(2_000, 1_000, 500)), id="main"), feature({"type": "MultiPolygon", "coordinates": [
        [square(0, 0, 100)], [square(4_000, 0, 300)]]}, id="off")]  # fmt: skip
    found = read_shapes({"region@land": written(tmp_path, *shapes)}, SCHEMA)
    assert places(found["region@land"]) == [(2250, 1250), (4150, 150), None]


BAD = {
    "no such attribute": ("county={}", [], "county"),
    "no equals sign": ("region", [], "is not an attribute and a file"),
    "no features": ("region={}", [], "no features"),
    "no file": ("region=nowhere.json", [], "cannot be read"),
    "a point": ("region={}", [feature({"type": "Point"}, id=i) for i in range(3)], "no polygon: Point"),
    "nothing at all": ("region={}", [feature(None, id=i) for i in range(3)], "no polygon: None"),
    "texts for numbers": ("region={}", [feature(polygon([["a", 0]] * 4), id=i) for i in range(3)], "no list of rings"),
    "a short ring": ("region={}", [feature(polygon([[0, 0]] * 3), id=i) for i in range(3)], "fewer than four points"),
    "no rings": ("region={}", [feature(polygon(), id=i) for i in range(3)], "has no rings"),
    "twice": ("region={}", [feature(BOXES[0], id=i) for i in (0, 1, 1)], "'1' has two features"),
    "other names": ("region={}", [feature(BOXES[0], id=i) for i in ("a", "b")], "'north' has no feature"),
}


@pytest.mark.parametrize(("word", "features", "told"), BAD.values(), ids=BAD)
def test_what_cannot_be_drawn_is_refused(tmp_path, word, features, told):
    with pytest.raises(hc.BadInput, match="shapes") as caught:
        read_shapes([word.format(written(tmp_path, *features))], SCHEMA)
    assert told in str(caught.value) and "Fix: " in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"features": 3}', '{"features": [3]}', '{"features": NaN}'])
def test_what_is_no_geojson_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(hc.BadInput, match="shapes of 'region'"):
        read_shapes({"region": tmp_path / "x.json"}, SCHEMA)
