"""Estimated errors of cells at face value on the page, in a real Chromium: marked, explained, and absent elsewhere."""

import csv
import io
import json

import pytest

import hushcube as hc
from browser.watching import explored, serious
from hushcube import samples

pytestmark = pytest.mark.service
FACE = "nonnegative"


@pytest.fixture(scope="module")
def stays():
    """Pairs of a made-up hospital's stays, measured selectively, with a face that has estimates and one without."""
    words = ["2-way", "age", "sex", "0-way", "region*age*sex"]
    plan = hc.plan(samples.HOSPITAL, words, rho="0.01", neighbours="add-remove", strategy="selective")
    release = hc.recover(hc.release(plan, samples.hospital(5_000), seed=3), FACE)
    return hc.recover(release, "consistent")


@pytest.fixture(scope="module", params=["report", "explorer"])
def page(request, look_at, stays, tmp_path_factory):
    if request.param == "report":
        yield look_at(hc.report(stays, tmp_path_factory.mktemp("estimates") / "stays.html"))
    else:
        with explored(stays) as address:
            yield look_at(address)


@pytest.fixture
def reader(page):
    def go(view):
        page.evaluate(
            "view => { history.pushState(null, '', `#${view}`); dispatchEvent(new Event('popstate')); }", view
        )
        page.wait_for_selector("body[data-busy=no]", state="attached")
        return page

    return go


def numbers(text):
    return [float(part.replace(",", "")) for part in text.removesuffix(" est.").removeprefix("± ").split(" to ")]


def test_cells_have_estimated_margins_and_so_have_totals_that_are_published(reader, stays):
    page = reader(f"table=age*sex&face={FACE}")
    table = stays.table("age*sex", face=FACE)
    told = page.locator("#figure tbody td:not(.total) .margin").all_inner_texts()
    assert all(text.endswith(" est.") for text in told)
    assert [numbers(text)[0] for text in told] == pytest.approx(table.estimated_margins.ravel(), rel=0.06)
    totals = page.locator("#figure tbody tr:not(.total) td.total .margin").all_inner_texts()
    widths = stays.table("age", face=FACE).estimated_margins
    assert [numbers(text)[0] for text in totals] == pytest.approx(widths, rel=0.06)
    assert "not promised" in page.inner_text("#under")
    assert "confidence" not in page.inner_text("#under")  # no margin of this table is promised
    assert "not promised" in page.inner_text("#controls")
    assert "how they are spread over cells is a model" in page.inner_text("#notes")
    assert "confidence interval" not in page.inner_text("body")
    assert serious(page) == []


def test_intervals_do_not_reach_below_zero(reader, stays):
    page = reader(f"table=region*age*sex&face={FACE}&margins=interval&totals=no")
    low, high = stays.table("region*age*sex", face=FACE).estimated_ends
    told = [numbers(text) for text in page.locator("#figure tbody td:not(.total) .estimated").all_inner_texts()]
    assert [own[0] for own in told] == pytest.approx(low.ravel(), rel=0.06, abs=0.6)
    assert [own[1] for own in told] == pytest.approx(high.ravel(), rel=0.06, abs=0.6)
    assert min(own[0] for own in told) == 0


@pytest.mark.parametrize("view", ["table=age*sex", "table=age*sex&face=consistent", f"table=region&face={FACE}"])
def test_other_faces_and_roll_ups_have_none(reader, view):
    page = reader(view)
    assert page.locator("#figure td .margin").count() > 0
    assert page.locator("#figure td:not(.total) .estimated").count() == 0
    totals = page.locator("#figure td.total .estimated").count()  # of a roll-up: a table that may be published itself
    assert ("Estimated intervals" in page.inner_text("#under")) == (totals > 0)
    assert FACE in view or not totals


def test_a_part_has_those_of_its_cells_alone(reader):
    page = reader(f"table=age*sex&face={FACE}&keep=age:0-1")
    assert page.locator("#figure tbody td:not(.total) .estimated").count() == 4
    assert page.locator("#figure td.total .estimated").count() == 0
    assert page.locator("#figure td.total .margin").count() > 0
    assert "Margins hold with 95% confidence" in page.inner_text("#under")  # those of the totals


@pytest.mark.parametrize("kind", ["bars", "multiples"])
def test_charts_draw_them_and_say_so(reader, kind):
    page = reader(f"table=age*sex&face={FACE}&as={kind}")
    drawn = page.locator("#figure svg path[aria-roledescription='bar']")
    assert drawn.count() == page.locator("#figure svg path[aria-label$='est.)']").count() == 16
    assert "not promised" in page.inner_text("#under")


def test_one_selected_cell_has_its_estimated_interval(reader, stays):
    page = reader(f"table=age*sex&face={FACE}&first=3")
    table = stays.table("age*sex", face=FACE)
    line = page.locator("[data-result=shown]")
    told = json.loads(line.get_attribute("data-numbers"))
    assert "estimated: " in line.inner_text()
    assert page.evaluate(
        "[...document.querySelector('#result tbody').childNodes].every((each) => each.tagName === 'TR')"
    )
    assert told["high"] == pytest.approx(table.estimated_ends[1].ravel()[3], rel=1e-3)
    page = reader(f"table=age*sex&face={FACE}&first=3-4")
    assert json.loads(page.locator("[data-result=shown]").get_attribute("data-numbers"))["high"] is None


def test_they_are_downloaded(reader, stays):
    page = reader(f"table=age*sex&face={FACE}")
    with page.expect_download() as found:
        page.click("[data-key=download-csv]")
    rows = list(csv.DictReader(io.StringIO(found.value.path().read_text(encoding="utf-8"))))
    table = stays.table("age*sex", face=FACE)
    for name, own in (("estimated_error", table.estimated), ("estimated_high", table.estimated_ends[1])):
        assert [float(row[name]) for row in rows] == pytest.approx(own.ravel(), rel=1e-3)
    with page.expect_download() as found:
        page.click("[data-key=download-svg]")
    assert "est.: estimated, not promised" in found.value.path().read_text(encoding="utf-8")
    page = reader("table=age*sex")
    with page.expect_download() as found:
        page.click("[data-key=download-csv]")
    assert "estimated" not in found.value.path().read_text(encoding="utf-8").splitlines()[0]


def test_maps_have_them_and_fade_by_them(look, stays, tmp_path):
    labels = samples.HOSPITAL.attributes[0].labels
    ring = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
    features = [
        {
            "type": "Feature",
            "id": label,
            "geometry": {"type": "Polygon", "coordinates": [[(x + at, y) for x, y in ring]]},
        }
        for at, label in enumerate(labels)
    ]
    shapes = tmp_path / "regions.geojson"
    shapes.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    report = hc.report(stays, tmp_path / "map.html", shapes={"region": shapes})
    page = look(f"{report.as_uri()}#table=region*sex&face={FACE}&as=map")
    drawn = page.locator("#figure .mark-shape path")
    assert drawn.count() == 12
    assert page.locator("#figure .mark-shape path[aria-label*='est.)']").count() == 12
    table = stays.table("region*sex", face=FACE)
    graded = (table.estimated / table.values).ravel()
    faded = [float(each.get_attribute("fill-opacity") or 1) for each in drawn.all()]
    assert sorted(faded) == sorted(1.0 if x <= 0.166 else 0.55 if x <= 0.333 else 0.12 for x in graded)
