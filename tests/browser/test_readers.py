"""What a reader can do with the page, in a real Chromium: choose, look, slice, roll up, add, compare, take away."""

import csv
import io
import json
import re
from importlib.resources import files

import numpy as np
import pytest

import hushcube as hc
from browser.watching import explored, serious
from hushcube.explorer.documents import Documents

pytestmark = pytest.mark.service

CLINIC = hc.Schema(
    [
        hc.Attribute(
            "region",
            values=["north", "east", "south", "west"],
            levels=[{"name": "half", "groups": {"upper": ["north", "east"], "lower": ["south", "west"]}}],
        ),
        hc.Attribute("age", values=["0-19", "20-39", "40-59", "60-79", "80+"], ordered=True),
        hc.Attribute("sex", values=["female", "=male, other"]),
        hc.Attribute(
            "ward",
            codes=3,
            labels={0: "medicine", 1: "surgery", 2: "maternity"},
            title="First ward",
            description="Where the stay began.",
        ),
    ],
    "clinic",
    measures=[hc.Measure("nights", bounds=(0, 10))],
    title="A clinic",
    source="Made up",
    unit_noun="stays",
)


@pytest.fixture(scope="module")
def clinic():
    """Counts and nights of all pairs and one triple, with a second face. Seeded, and therefore stamped."""
    random = np.random.default_rng(7)
    rows = {a.name: np.array(a.coded)[random.integers(a.size, size=3000)] for a in CLINIC.attributes}
    words = ["<=2-way", "region*age*sex"]
    plan = hc.plan(CLINIC, words, measures=["sum(nights)", "avg(nights)"], rho="0.05", neighbours="add-remove")
    import pyarrow as pa

    release = hc.release(plan, pa.table({**rows, "nights": random.integers(11, size=3000)}), seed=3)
    return hc.recover(release, "nonnegative")


@pytest.fixture(scope="module")
def documents(clinic):
    return Documents(clinic)


@pytest.fixture(scope="module")
def clinic_report(clinic, tmp_path_factory):
    out = tmp_path_factory.mktemp("clinic") / "clinic.html"
    return hc.report(clinic, out, targets=["region*age: stderr<=20", "total: stderr<=1"]).as_uri()


@pytest.fixture(scope="module")
def clinic_explorer(clinic):
    with explored(clinic) as address:
        yield address


@pytest.fixture(scope="module")
def reader(look_at, clinic_report):
    """One page for many tests: each goes to its own view, as somebody does who follows a link."""
    page = look_at(clinic_report)

    def go(view):
        page.evaluate(GO, view)
        settled(page)
        return page

    return go


CASES = 2  # of random groups, for each table and quantity

GO = """view => new Promise((done) => {
    if (location.hash === `#${view}`) return done();
    addEventListener("popstate", () => setTimeout(done), { once: true });
    location.hash = view;
})"""


def settled(page):
    """Wait until a page has done what it is working on."""
    page.wait_for_selector("body[data-busy=no]", state="attached")


def numbers(page, name):
    """A line of the comparison, in full."""
    settled(page)
    return json.loads(page.locator(f"[data-result={name}]").get_attribute("data-numbers"))


def cells(page):
    """The numbers of the cross-table, row by row, with its totals."""
    rows = page.locator("#figure tbody tr").all()
    return [[_number(cell) for cell in row.locator("td .value").all_inner_texts()] for row in rows]


def _number(text):
    return float(text.replace(",", "").replace("−", "-"))


# ------------------------------------------------------------------------------------------------------------- choosing


def test_attributes_are_chosen_from_a_list_that_can_be_searched(reader):
    page = reader("table=region*age")
    page.fill("#search", "wa")
    assert page.locator("#attributes .name").all_inner_texts() == ["First ward"]
    page.check("[data-key=attribute-ward]")  # no table has all three: the first makes room
    settled(page)
    assert "table=age*ward" in page.url
    assert page.inner_text("#view-title") == "Number of stays by age and First ward"
    page.uncheck("[data-key=attribute-ward]")
    settled(page)
    assert page.inner_text("#view-title") == "Number of stays by age"
    page.fill("#search", "nothing like it")
    assert "No attribute" in page.inner_text("#attributes")
    page.fill("#search", "")


def test_tables_are_chosen_from_a_list(reader):
    page = reader("table=total")
    page.click("#tables-box summary")
    page.fill("#search", "sex ward")
    page.click("#tables a")
    settled(page)
    assert "table=sex*ward" in page.url
    page.fill("#search", "")
    page.click("#tables-box summary")


def test_tables_are_chosen_from_the_lattice(reader, clinic):
    page = reader("table=age")
    assert page.locator("#lattice a").count() == len(clinic)
    shades = {each.get_attribute("class") for each in page.locator("#lattice a").all()}
    assert {"node shade-0", "node shade-4"} <= shades
    assert "error" in page.locator("[data-key='node-age*sex']").get_attribute("aria-label")
    page.focus("[data-key='node-age*sex']")
    page.keyboard.press("Enter")
    settled(page)
    assert page.inner_text("#view-title") == "Number of stays by age and sex"
    assert page.locator("#lattice a[aria-current]").get_attribute("data-key") == "node-age*sex"


# -------------------------------------------------------------------------------------------------------------- looking


def test_a_cross_table_has_the_published_numbers_and_their_totals(reader, clinic):
    page = reader("table=region*age")
    table, shown = clinic.table("region*age"), np.array(cells(page))
    assert shown.shape == (5, 6)
    assert shown[:4, :5] == pytest.approx(table.values, abs=0.6)
    assert shown[:4, 5] == pytest.approx(table.values.sum(axis=1), abs=0.6)
    assert shown[4, 5] == pytest.approx(table.values.sum(), abs=0.6)
    total = page.locator("#figure tbody tr").first.locator("td").last
    margin = clinic.estimate("region*age", where={"region": "north"}).margin
    assert margin == pytest.approx(float(clinic.table("region").margins[0])), "a total is a cell of its own table"
    assert _number(re.search(r"± ([\d.,]+)", total.inner_text())[1]) == pytest.approx(margin, abs=0.6)
    assert page.locator("#figure caption").count() == 1
    assert page.locator("#figure th[scope=row]").count() == 5
    assert page.locator("#figure thead th[scope=col]").count() == 7


def test_margins_are_shown_as_text_or_as_shading(reader):
    page = reader("table=region*ward")
    assert re.fullmatch(r"[\d,.]+( [EF])? ± [\d,.]+", page.locator("#figure td").first.inner_text()), "it can be copied"
    page.select_option("[data-key=margins]", "interval")
    settled(page)
    assert " to " in page.locator("#figure td").first.inner_text()
    page.select_option("[data-key=margins]", "shading")
    settled(page)
    assert "±" not in page.inner_text("#figure")
    shades = page.locator("#figure td").evaluate_all("all => all.map(td => getComputedStyle(td).backgroundColor)")
    assert len(set(shades)) > 3
    page.uncheck("[data-key=totals]")
    settled(page)
    assert "Total" not in page.inner_text("#figure")


@pytest.mark.parametrize("kind", ["heat", "bars", "multiples"])
def test_charts_draw_every_cell(reader, kind):
    page = reader("table=region*age")
    page.check(f"[data-key=as-{kind}]", force=True)
    settled(page)
    assert page.locator("#figure svg [class*='layer_0_marks'] path").count() == 20
    if kind != "heat":
        assert page.locator("#figure svg [class*='layer_1_marks'] line").count() == 20  # an error bar each
    if kind == "multiples":
        assert {"north", "east", "south", "west"} <= set(page.locator("#figure svg text").all_text_contents())
    assert "NOT PRIVATE" in page.inner_text("#figure")


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """Four made-up regions around a point."""
    corners = {"north": (0, 50), "east": (2, 49), "south": (0, 48), "west": (-2, 49)}
    ring = [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]
    path = tmp_path_factory.mktemp("shapes") / "regions.geojson"
    features = [
        {
            "type": "Feature",
            "properties": {"place": name, "secret": "</script><b>x"},
            "geometry": {"type": "Polygon", "coordinates": [[(x + a, y + b / 2) for a, b in ring]]},
        }
        for name, (x, y) in corners.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_maps_are_drawn_where_there_are_shapes(look, people, shapes, reader, tmp_path):
    """A shape for each region, pale and lettered where the number is not reliable; small maps for other attributes."""
    assert reader("table=region").locator("[data-key=as-map]").count() == 0
    plan = hc.plan(hc.Schema(CLINIC.attributes, "clinic"), "region*ward,age", rho="0.0002", neighbours="add-remove")
    release = hc.release(plan, people, seed=4)
    page = look(f"{hc.report(release, tmp_path / 'map.html', shapes={'region': shapes}).as_uri()}#table=region*ward")
    assert "secret" not in page.content()
    page.click("label:has(> [data-key=as-map])")
    settled(page)
    drawn = page.locator("#figure .mark-shape path")
    assert drawn.count() == 12 and "as=map" in page.url
    flags = release.table("region*ward").quality.ravel()
    letters = "".join(page.locator("#figure .mark-text.role-mark text").all_text_contents())
    assert sorted(letters) == sorted("EF"[each - 1] for each in flags if each) and {*flags} == {0, 1, 2}
    wide, room = (page.locator(name).bounding_box()["width"] for name in ("#figure svg", "#figure"))
    assert 0.6 * room < wide <= room
    faded = [float(each.get_attribute("fill-opacity") or 1) for each in drawn.all()]
    assert sorted(faded) == sorted((1.0, 0.55, 0.12)[each] for each in flags)
    assert serious(page) == []
    for away in (15, 0):  # also where a letter stands
        box = drawn.first.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2 + away, box["y"] + box["height"] / 2)
        assert re.search(r"medicine · north · [\d,.]+ \(.* to .*\)", page.inner_text("#tip"))
    page.evaluate(GO, "table=region&as=map")
    settled(page)
    assert page.locator("#figure .mark-shape path").count() == 4
    page.evaluate(GO, "table=age&as=map")
    settled(page)
    assert page.locator("#figure table").count() == 1 and page.locator("[data-key=as-map]").count() == 0


def test_flags_are_letters_with_a_legend(reader, clinic):
    page = reader("table=region*age*sex")
    classes = np.array(Documents(clinic).table("region*age*sex")["quality"])
    flags = page.locator("#figure td:not(.total) .flag").all_inner_texts()
    assert flags.count("E") == (classes == 1).sum() > 0
    assert flags.count("F") == (classes == 2).sum()
    assert "E use with caution" in page.inner_text("#under .legend")


# ------------------------------------------------------------------------------------------ slicing, rolling, arranging


def test_a_slice_keeps_labels(reader, clinic):
    page = reader("table=region*age")
    page.click("[data-key='slice-age']")
    page.uncheck("[data-key='label-age-0']")
    settled(page)
    page.uncheck("[data-key='label-age-1']")
    settled(page)
    shown = np.array(cells(page))
    kept = clinic.table("region*age").values[:, 2:]
    assert shown[:4, :3] == pytest.approx(kept, abs=0.6)
    assert shown[:4, 3] == pytest.approx(kept.sum(axis=1), abs=0.6)
    assert "keep=age:2-4" in page.url
    page.click("[data-key='only-age-4']")
    settled(page)
    assert page.locator("#figure thead th.number").all_inner_texts() == ["80+", "Total"]
    page.click("[data-key='all-age']")
    settled(page)
    assert "keep" not in page.url
    page.click("[data-key='slice-age']")


def test_rolling_up_and_drilling_down_follow_the_levels(reader, clinic):
    page = reader("table=region*age&keep=region:0-1")
    page.click("[data-key=coarser-region]")
    settled(page)
    assert page.inner_text("#view-title") == "Number of stays by region (half) and age"
    table = clinic.table("region@half*age")
    assert np.array(cells(page))[0, :5] == pytest.approx(table.values[0], abs=0.6)
    margin = page.locator("#figure td .margin").first.inner_text()
    assert _number(margin.lstrip("± ")) == pytest.approx(table.margins[0, 0], abs=0.6)
    assert "keep=region@half:0" in page.url
    page.click("[data-key=finer-region]")
    settled(page)
    assert "keep=region:0-1" in page.url
    page.select_option("[data-key=level-region]", "region@half")
    settled(page)
    page.click("[data-key=coarser-region]")  # above its coarsest level it is summed out
    settled(page)
    assert page.inner_text("#view-title") == "Number of stays by age"


def test_attributes_move_between_rows_and_columns(reader):
    page = reader("table=region*age*sex")
    assert page.locator("#figure thead .axis").all_inner_texts() == ["region", "age", "sex"]
    page.click("[data-key=first-age]")
    settled(page)
    assert page.locator("#figure thead .axis").all_inner_texts() == ["age", "region", "sex"]
    page.click("[data-key=move-region]")
    settled(page)
    assert page.locator("#figure thead .across").inner_text() == "region"
    assert page.locator("#figure tbody th[scope=rowgroup]").count() == 5


# ------------------------------------------------------------------------------------------------- adding and comparing


def test_cells_are_selected_by_keyboard_and_added_up(reader, clinic):
    page = reader("table=region*age")
    page.focus("#figure td[tabindex='0']")
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#figure td[aria-selected=true]").count() == 3
    found = numbers(page, "sum")
    values = clinic.table("region*age").values
    assert found["value"] == pytest.approx(values[0, 0] + values[0, 1] + values[1, 1], abs=0.1)
    page.keyboard.press("Space")  # takes it out again
    own = clinic.estimate("region*age", where={"region": "north", "age": ["0-19", "20-39"]})
    found = numbers(page, "sum")
    assert [found["low"], found["high"]] == pytest.approx([own.low, own.high], abs=0.1)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Home")
    page.keyboard.press("Space")  # the header of a row selects it
    assert page.locator("#figure td[aria-selected=true]").count() == 5
    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.closest('table')")  # no trap
    page.click("[data-key=clear]")
    assert page.locator("#figure td[aria-selected=true]").count() == 0


def test_two_groups_are_compared_with_the_mouse(reader, clinic):
    page = reader("table=age*sex")
    page.click("#figure thead th:has-text('female')")
    page.check("[data-key=group-second]", force=True)
    page.click("#figure thead th:has-text('=male, other')")
    page.check("[data-key=group-first]", force=True)
    values = clinic.table("age*sex").values.sum(axis=0)
    assert numbers(page, "difference")["value"] == pytest.approx(values[0] - values[1], abs=0.1)
    assert "A − B" in page.inner_text("#result")
    assert page.locator("#figure td.second").count() == 5


@pytest.mark.parametrize("word", ["region*age", "region*age*sex", "region@half*sex", "ward"])
@pytest.mark.parametrize("quantity", ["count", "sum(nights)"])
def test_sums_differences_and_ratios_are_those_of_python(reader, documents, word, quantity):
    random = np.random.default_rng(len(word))
    size = np.prod(documents.table(word)["shape"])
    for _ in range(CASES):
        chosen = random.permutation(size)[: random.integers(2, size + 1)]
        cut = random.integers(1, len(chosen))
        first, second = sorted(map(int, chosen[:cut])), sorted(map(int, chosen[cut:]))
        lists = (",".join(map(str, cells)) for cells in (first, second))
        page = reader("table={}&quantity={}&first={}&second={}".format(word, quantity, *lists))
        exact = documents.estimate(word, quantity, first, second)
        for name in ("sum", "versus", "difference", "ratio"):
            found, error = numbers(page, name), exact["difference"]["std_error"] / 200
            if name == "ratio":
                error = max(1.0, abs(exact["ratio"]["value"])) * 0.01
            for end in ("value", "low", "high"):
                assert (found[end] is None) == (exact[name][end] is None)
                if found[end] is not None:
                    assert found[end] == pytest.approx(exact[name][end], abs=error, rel=2e-3), (name, end)


LAPLACE = {"epsilon": 2, "neighbours": "add-remove"}
ALONE = {
    "laplace": ("<=2-way", "workload", ["region*age", "region@half*age", "sex"]),
    "levels": ("region@half*age,region*age*sex", "levels", ["region*age*sex", "region@half*sex", "region@half*age"]),
}


@pytest.fixture(scope="module")
def people():
    import pyarrow as pa

    random = np.random.default_rng(8)
    return pa.table({a.name: np.array(a.coded)[random.integers(a.size, size=3000)] for a in CLINIC.attributes})


@pytest.mark.parametrize("kind", ALONE)
def test_sums_are_exact_under_laplace_noise_and_with_nested_levels(look, people, kind, tmp_path, monkeypatch):
    words, strategy, tables = ALONE[kind]
    schema = hc.Schema(CLINIC.attributes, "clinic")
    documents = Documents(hc.release(hc.plan(schema, words, strategy=strategy, **LAPLACE), people, seed=4))
    page = look(hc.report(documents.release, tmp_path / "page.html"))
    random = np.random.default_rng(1)
    for word in tables:
        chosen = random.permutation(int(np.prod(documents.table(word)["shape"])))
        first, second = (sorted(map(int, part)) for part in np.split(chosen, [len(chosen) // 3 or 1]))
        lists = (",".join(map(str, own)) for own in (first, second))
        page.evaluate(GO, "table={}&first={}&second={}".format(word, *lists))
        exact = documents.estimate(word, "count", first, second)
        for name in ("sum", "versus", "difference", "ratio"):
            found, error = numbers(page, name), exact["sum"]["std_error"] / 200
            for end in ("value", "low", "high"):
                assert found[end] == pytest.approx(exact[name][end], abs=error, rel=2e-3), (name, end)
    assert "±?" not in page.inner_text("#figure")
    if kind == "laplace":  # a total has the margin of the same total as a table of its own
        page.evaluate(GO, "table=region*age")
        settled(page)
        shown = page.locator("#figure tr.total td").last.inner_text()
        margin, release = float(re.search(r"± ([\d.,]+)", shown)[1]), documents.release
        assert margin == pytest.approx(float(release.table("total").margins), abs=0.06)
        assert margin < 0.97 * float(release.plan.count.errors.any_margin(release.table("total").std_errors))
    if kind == "levels":  # with the errors of its totals alone, a table shows the same
        page.evaluate(GO, "table=region*age*sex")
        settled(page)
        monkeypatch.setattr("hushcube.explorer.covariances.MOST_NUMBERS", 0)
        other = look(f"{hc.report(documents.release, tmp_path / 'short.html').as_uri()}#table=region*age*sex")
        settled(other)
        assert "±" in other.inner_text("#figure tr.total") and other.inner_text("#figure") == page.inner_text("#figure")
        other.evaluate(GO, "table=region*age&first=0-2")
        settled(other)
        assert "±?" not in other.inner_text("#figure") and "hushcube explore" in other.inner_text("#result")


@pytest.mark.parametrize("word", ["region*age", "region*age*sex", "region@half*sex"])
def test_averages_of_several_cells_are_those_of_python(reader, documents, word):
    random = np.random.default_rng(5)
    size = int(np.prod(documents.table(word)["shape"]))
    picks = [(range(size // 2), range(size // 2, size)), (range(1), range(1, 2))]
    picks += [np.split(random.permutation(size)[: size - 1], [size // 3 + 1]) for _ in range(CASES)]
    for first, second in picks:
        first, second = (sorted(map(int, own)) for own in (first, second))
        lists = (",".join(map(str, own)) for own in (first, second))
        page = reader("table={}&quantity=avg(nights)&first={}&second={}".format(word, *lists))
        exact = documents.estimate(word, "avg(nights)", first, second)
        for name in ("sum", "versus", "difference", "ratio"):
            found = numbers(page, name)
            for end in ("value", "low", "high"):
                assert (found[end] is None) == (exact[name][end] is None), (name, end)
                assert found[end] is None or found[end] == pytest.approx(exact[name][end], abs=0.02), (name, end)


def test_averages_are_rolled_up(reader, clinic_explorer, clinic, look):
    """By the page and by the server alike."""
    view = "table=region@half*age&quantity=avg(nights)&margins=interval"
    pages = [reader(view), look(f"{clinic_explorer}#{view}")]
    table = clinic.table("region@half*age", "avg(nights)")
    for page in pages:
        settled(page)
        assert page.inner_text("#view-title") == "Average nights by region (half) and age"
        assert np.array(cells(page))[:2, :5] == pytest.approx(table.values, abs=0.06)
        assert "±?" not in page.inner_text("#figure") and page.is_hidden("#problem")
    ends = [np.array(re.findall(r"([\d.]+) to ([\d.]+)", page.inner_text("#figure")), float) for page in pages]
    assert ends[0].shape == (18, 2) and ends[0] == pytest.approx(ends[1], abs=0.02), "a page has fewer digits"


# ------------------------------------------------------------------------------------- faces, quantities, views, files


def test_faces_and_quantities_are_switched(reader, clinic):
    page = reader("table=region*age*sex")
    page.select_option("[data-key=face]", "nonnegative")
    settled(page)
    assert min(min(row) for row in cells(page)) >= 0
    assert "nonnegative" in page.inner_text("#controls")
    page.select_option("[data-key=quantity]", "avg(nights)")
    settled(page)
    assert page.locator("[data-key=face]").is_disabled()
    low = clinic.table("region*age*sex", "avg(nights)").low
    assert page.locator("#figure td .margin").first.inner_text().startswith(f"{low[0, 0, 0]:.1f}")


def test_a_view_is_a_link_and_the_back_button_works(reader, look, clinic_report):
    page = reader("table=region*age&keep=age:1-2&margins=interval")
    page.click("#figure td >> nth=1")
    settled(page)
    other = look(page.url)
    settled(other)
    assert other.inner_text("#figure") == page.inner_text("#figure")
    assert numbers(other, "sum") == numbers(page, "sum")
    page.select_option("[data-key=margins]", "none")
    settled(page)
    page.go_back()
    page.wait_for_selector("[data-key=margins] option[value=interval]:checked", state="attached")
    settled(page)
    assert " to " in page.inner_text("#figure")


def test_what_is_seen_is_downloaded(reader, clinic):
    page = reader("table=age*sex&keep=age:0-1")
    with page.expect_download() as found:
        page.click("[data-key=download-csv]")
    assert found.value.suggested_filename == "NOT-PRIVATE-clinic-age-sex.csv"
    rows = list(csv.DictReader(io.StringIO(found.value.path().read_text(encoding="utf-8"))))
    assert [(row["age"], row["sex"]) for row in rows][:2] == [("0-19", "female"), ("0-19", "'=male, other")]
    table = clinic.table("age*sex", where={"age": ["0-19", "20-39"]})
    assert [float(row["value"]) for row in rows] == pytest.approx(table.values.ravel(), abs=0.1)
    assert [float(row["high"]) for row in rows] == pytest.approx(table.high.ravel(), abs=0.1)
    page = reader("table=ward")
    with page.expect_download() as found:
        page.click("[data-key=download-csv]")
    rows = list(csv.DictReader(io.StringIO(found.value.path().read_text(encoding="utf-8"))))
    assert [(row["ward"], row["ward_code"]) for row in rows] == [
        ("medicine", "0"),
        ("surgery", "1"),
        ("maternity", "2"),
    ]
    for kind in ("table", "bars"):
        page = reader(f"table=age*sex&as={kind}")
        with page.expect_download() as found:
            page.click("[data-key=download-svg]")
        text = found.value.path().read_text(encoding="utf-8")
        assert text.startswith("<svg")
        assert "NOT PRIVATE" in text
        assert "female" in text
        with page.expect_download() as found:
            page.click("[data-key=download-png]")
        assert found.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_view_can_be_printed(reader):
    page = reader("table=region*age")
    page.emulate_media(media="print")
    try:
        assert page.is_visible("#figure table")
        assert page.is_visible("#privacy")
        assert page.is_visible(".stamp")
        assert not page.is_visible("#controls")
        assert not page.is_visible("nav")
        assert page.locator("body").get_attribute("data-stamp") == "NOT PRIVATE"  # across every sheet
        assert page.evaluate("getComputedStyle(document.body, '::after').position") == "fixed"
    finally:
        page.emulate_media(media="screen")


def test_the_guarantee_notes_and_errors_are_in_plain_view(reader):
    page = reader("table=ward")
    assert page.inner_text("h1") == "A clinic"
    assert "Made up" in page.inner_text("#heading")
    assert "Where the stay began." in page.inner_text("#axes")
    assert page.locator(".stamp strong").inner_text() == "NOT PRIVATE"
    assert "What this guarantee means for you" in page.inner_text("#privacy")
    assert "do not use" in page.inner_text("#notes")
    page.click("#errors summary")
    assert "✓ met" in page.inner_text("#errors")
    assert "✗ missed" in page.inner_text("#errors")


def test_a_wrong_address_is_answered_with_words(reader):
    page = reader("table=<img src=x onerror=alert(1)>*age&as=nonsense&first=99999")
    assert page.is_visible("#problem")
    assert page.locator("img").count() == 0


# ------------------------------------------------------------------------------------------------ everybody, everywhere


@pytest.mark.parametrize(("kind", "dark"), [("table", False), ("bars", True)], ids=["light", "dark"])
def test_axe_finds_nothing_serious(look, clinic_report, kind, dark):
    from axe_playwright_python.sync_playwright import Axe

    page = look(f"{clinic_report}#table=region*age*sex&as={kind}&first=0-3&second=8", dark=dark)
    settled(page)
    page.click("#tables-box summary")
    page.click("#errors summary")
    page.click("[data-key='slice-age']")
    page.wait_for_selector("#tables a")
    found = Axe().run(page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in serious] == []


def test_no_width_scrolls_the_page_sideways(look, clinic_report):
    page = look(f"{clinic_report}#table=region*age*sex&across=age", width=390)
    for width in (390, 700, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        for kind in ("table", "bars", "heat", "multiples"):
            page.evaluate(GO, f"table=region*age*sex&across=age&as={kind}")
            settled(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_long_titles_are_wrapped_on_a_phone_not_cut_off(look, people, tmp_path):
    import pyarrow as pa

    long = "The highest level of education that was completed by then"
    sex = hc.Attribute("sex", values=CLINIC.attributes[2].labels, title=long)
    wage = hc.Measure("wage", bounds=(0, 9), title="wages, salaries, tips and bonuses of the last twelve months")
    schema = hc.Schema([CLINIC.attributes[1], sex], "long", measures=[wage])
    rows = people.append_column("wage", pa.array(np.zeros(len(people), np.int64)))
    release = hc.release(hc.plan(schema, "age*sex", measures=["sum(wage)"], **LAPLACE), rows)
    report = hc.report(release, tmp_path / "long.html").as_uri()
    page = look(f"{report}#table=age*sex&as=bars&quantity=sum(wage)", width=390)
    settled(page)
    assert "…" not in " ".join(page.locator("#figure svg text").all_text_contents())
    chosen = page.locator(".choice", has_text="Quantity")
    assert chosen.locator("span").bounding_box()["height"] < 40  # one line
    select, panel = chosen.locator("select").bounding_box(), page.locator(".panel", has=chosen).bounding_box()
    assert select["x"] + select["width"] <= panel["x"] + panel["width"]


def test_many_tables_are_shown_a_page_at_a_time(look, tmp_path):
    schema = hc.Schema([hc.Attribute(f"question {i}", codes=2) for i in range(32)])
    import pyarrow as pa

    people = pa.table({name: np.zeros(50, np.int64) for name in schema.names})
    release = hc.release(hc.plan(schema, "<=2-way", rho=1, neighbours="add-remove"), people)
    page = look(hc.report(release, tmp_path / "many.html"))
    settled(page)
    assert page.locator("#attributes li").count() == 30
    assert page.locator("#lattice a").count() <= 40  # a neighbourhood
    page.click("#tables-box summary")
    page.wait_for_selector("#tables a")
    assert page.locator("#tables a").count() == 50
    page.click("[data-key=tables-after]")
    page.wait_for_selector("#tables .pager span:text('51 to 100')")
    page.click("[data-key=attributes-after]")
    assert page.locator("#attributes li").count() == 2


def test_an_explorer_of_more_tables_than_it_lists_finds_them_by_search(look, clinic, monkeypatch):
    monkeypatch.setattr("hushcube.explorer.documents.MOST_LISTED", 5)
    with explored(clinic) as address:
        page = look(address)
        settled(page)
        assert page.inner_text("#view-title") == "Number of stays by region and age"
        assert page.locator("#lattice a[aria-current]").count() == 1
        page.click("[data-key='node-region*age*sex']")
        settled(page)
        assert page.locator("#figure tbody th[scope=rowgroup]").count() == 4
        page.click("#tables-box summary")
        page.fill("#search", "sex ward")
        page.click("[data-key='table-sex*ward']")
        settled(page)
        assert page.inner_text("#view-title") == "Number of stays by sex and First ward"


def test_every_text_of_the_page_is_in_the_file_of_strings():
    app = files("hushcube.explorer") / "app"
    strings = json.loads((app / "strings.en.json").read_text(encoding="utf-8"))
    code = "".join(each.read_text(encoding="utf-8") for each in app.iterdir() if each.name.endswith((".js", ".html")))
    asked = set(re.findall(r'(?:\bwords\(|data-(?:text|label|placeholder)=)"([\w.]+)"', code))
    assert asked <= set(strings)
    made = re.findall(r"words\(`([\w.]+)\.\$\{", code)  # such as words(`as.${name}`)
    conditional = set(re.findall(r'[?:] "([a-z]+\.[\w.]+)"', code))
    unused = {name for name in set(strings) - asked - conditional if not name.startswith(tuple(made))}
    assert unused == {"language"}
