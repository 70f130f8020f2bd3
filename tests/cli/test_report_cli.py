"""`hushcube report` and `hushcube explore`: what they write and say, and what they refuse."""

import threading
import urllib.request

import pytest

import hushcube as hc
from hushcube import samples
from hushcube.explorer import page, serving


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """Vega takes seconds to put together; tests in a browser have it."""
    for module in (page, serving):
        monkeypatch.setattr(module, "vega", lambda: "")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported") / "published"
    hc.release(hc.plan(samples.TITANIC, "<=2-way", epsilon=1, neighbours="add-remove"), samples.titanic(), out=folder)
    return folder


def run(capsys, *arguments):
    from hushcube.cli import run as command

    code = command([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_report_is_written(published, tmp_path, capsys):
    code, out, said = run(
        capsys, "report", published, "--out", tmp_path / "page.html", "--target", "class*sex: stderr<=5"
    )
    assert (code, out) == (0, "") and "open" in said
    assert '"required":5.0' in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, _, said = run(capsys, "report", published, "--out", tmp_path / "site")
    assert code == 0 and "index.html" in said and (tmp_path / "site" / "index.html").is_file()


def test_what_cannot_be_written_is_refused(published, tmp_path, capsys):
    (tmp_path / "page.html").write_text("mine")
    for arguments, field in (
        ((published, "--out", tmp_path / "page.html"), "--out"),
        ((tmp_path, "--out", tmp_path / "new.html"), "manifest.json"),
        ((published, "--out", tmp_path / "new.html", "--target", "class: stderr"), "--target"),
        ((published, "--out", tmp_path / "new.html", "--target", "wage: stderr<=1"), "wage"),
    ):
        code, _, said = run(capsys, "report", *arguments)
        assert code == 2 and field in said and "Fix:" in said
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_damaged_release_is_refused(published, tmp_path, capsys):
    import shutil

    broken = shutil.copytree(published, tmp_path / "broken")
    table = next((broken / "tables").iterdir())
    table.write_bytes(table.read_bytes()[:-1])
    for arguments in (("report", broken, "--out", tmp_path / "page.html"), ("explore", broken, "--no-browser")):
        code, _, said = run(capsys, *arguments)
        assert code == 2 and table.name in said
    assert not (tmp_path / "page.html").exists()


def test_a_page_is_served_until_a_signal(published, capsys, monkeypatch):
    from hushcube.web.connection import Server

    found = {}

    def look(server, address):
        with urllib.request.urlopen(f"{address}/api/table?word=sex") as answer:
            found["table"] = answer.read()
        server.should_exit = True

    def ready(self, config, address, ready):
        def then(where):
            ready(where)
            threading.Thread(target=look, args=(self, where)).start()

        own(self, config, address, then)

    own = Server.__init__
    monkeypatch.setattr(Server, "__init__", ready)
    monkeypatch.setattr("webbrowser.open", lambda address: found.setdefault("opened", address))
    code, out, said = run(capsys, "explore", published)
    assert code == 0 and out.startswith("http://127.0.0.1:") and out.strip() == found["opened"] and "stopped" in said
    assert b'"word":"sex"' in found["table"]
    code, _, said = run(capsys, "explore", published, "--port", "99999", "--no-browser")
    assert code == 2 and "port" in said
