"""A real Chromium for reports and explorers. What it says on its console, or asks of others, fails a test."""

import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import hushcube as hc
from browser.watching import explored
from hushcube import samples

WAIT = 20_000  # milliseconds, on a machine that does other things as well


@pytest.fixture(scope="module")
def chromium():
    """One browser for a module: while there is one, its event loop runs, and no other test can start a loop."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("Chromium is not installed: `make test` installs it where it can")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'hushcube[dev]'")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def _looking(chromium):
    """`look(address, width=1200, dark=False)` opens a page and waits until it shows a table.

    In the end every page must have had a silent console, and have asked nobody else for anything.
    """
    opened, problems = [], []

    def open_page(address, width=1200, height=900, dark=False, ready="body[data-ready]"):
        where, scheme = address if isinstance(address, str) else address.as_uri(), "dark" if dark else "light"
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", lambda told: told.type in ("error", "warning") and problems.append(told.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: _is_outside(request.url, where) and problems.append(request.url))
        page.goto(where)
        page.wait_for_selector(ready, state="attached")
        return page

    yield open_page
    for context in opened:
        context.close()
    assert problems == []


@pytest.fixture
def look(chromium):
    """Opens pages for one test."""
    with _looking(chromium) as look:
        yield look


@pytest.fixture(scope="module")
def look_at(chromium):
    """Opens pages for all tests of a file."""
    with _looking(chromium) as look:
        yield look


def _is_outside(url, page):
    asked, own = urlsplit(url), urlsplit(page)
    if asked.scheme == "file":
        return Path(own.path).parent not in Path(asked.path).parents
    return asked.scheme not in ("data", "blob") and (asked.scheme, asked.netloc) != (own.scheme, own.netloc)


@pytest.fixture(scope="session")
def stays():
    """A made-up hospital's stays: counts and nights of all pairs of attributes, and of one triple."""
    plan = hc.plan(
        samples.HOSPITAL,
        ["<=2-way", "region*age*sex"],
        measures=["sum(nights)", "avg(nights)"],
        rho="0.5",
        neighbours="add-remove",
    )
    return hc.release(plan, samples.hospital(20_000))


@pytest.fixture(scope="module")
def stays_report(stays, tmp_path_factory):
    """The same as one file."""
    return hc.report(stays, tmp_path_factory.mktemp("report") / "stays.html")


@pytest.fixture(scope="module")
def stays_explorer(stays):
    """The same, served."""
    with explored(stays) as address:
        yield address
