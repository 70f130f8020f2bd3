"""Draw the pictures of the explorer in the README. Run by `make pictures`; needs Chromium.

    explorer.png          the page of the made-up hospital of `examples/hospital.py`, on a desk
    explorer-phone.png    another view of it, on a phone in the dark

The noise is seeded, so that the pictures can be drawn again: the page says that it is not private.
"""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import hushcube as hc

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"


def hospital(folder: Path) -> Path:
    """The report of the hospital of the README."""
    data = folder / "encounters.csv"
    runpy.run_path(str(EXAMPLES / "hospital.py"))["write_encounters"](data)
    schema = hc.Schema.read(EXAMPLES / "hospital.yaml")
    plan = hc.plan(schema, "<=2-way", epsilon=3, neighbours="add-remove", rows_per_person=3)
    release = hc.release(plan, data, seed=1912)
    return hc.report(release, folder / "hospital.html")


def draw(browser: Browser, page: Path, view: str, out: Path, *, width: int, height: int, scheme: str) -> None:
    """One view of a page as a picture; `scheme` is light or dark."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    seen = context.new_page()
    seen.goto(f"{page.as_uri()}#{view}")
    seen.wait_for_selector("body[data-busy=no]", state="attached")
    seen.screenshot(path=out)
    context.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = hospital(Path(folder))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = "table=ward*sex&first=0,3&second=1,4"
        draw(browser, report, view, HERE / "explorer.png", width=1200, height=1400, scheme="light")
        view = "table=ward*outcome&as=bars"
        draw(browser, report, view, HERE / "explorer-phone.png", width=390, height=1400, scheme="dark")
        browser.close()
