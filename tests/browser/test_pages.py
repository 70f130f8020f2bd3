"""Pages as readers open them: from a file, from a folder, from `hushcube explore`."""

import pytest

import hushcube as hc
from browser.watching import serious
from hushcube.explorer import page as pages

pytestmark = pytest.mark.service


@pytest.fixture(params=["report", "explorer"])
def address(request):
    return request.getfixturevalue(f"stays_{request.param}")


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1200, True)])
def test_a_page_shows_a_table(look, address, width, dark):
    page = look(address, width=width, dark=dark)
    assert page.locator("#figure table").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_can_be_used_without_eyes_or_mouse(look, stays_report, dark):
    assert serious(look(stays_report, dark=dark)) == []


def test_large_reports_load_tables_from_files_beside_them(look, stays, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "MOST_EMBEDDED", 1_000)
    monkeypatch.setattr(pages, "GROUP", 4_000)
    folder = hc.report(stays, tmp_path / "site")
    assert len(list((folder / "data").iterdir())) > 10
    page = look(folder / "index.html")
    page.goto(f"{(folder / 'index.html').as_uri()}#{page.evaluate('location.hash').lstrip('#')}")
    assert page.locator("#figure table").count() == 1
