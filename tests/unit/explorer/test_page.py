"""The page as a file: nothing in it can be taken for markup, and nothing is asked of anybody."""

import base64
import hashlib
import json
import re
import sys

import pyarrow as pa
import pytest

import hushcube as hc
from hushcube.explorer import page
from hushcube.explorer.documents import Documents
from hushcube.explorer.joining import joined
from hushcube.model.attribute import Attribute

EVIL = ['</script><script>alert("1")</script>', "<!--\u2028'\"&", "=1+1", "\u202eabc", "🙂"]


@pytest.fixture(scope="module")
def release():
    schema = hc.Schema([Attribute("a", values=EVIL), Attribute("b<i>", codes=3)], "</title><script>x")
    data = pa.table({"a": EVIL * 10, "b<i>": [0, 1, 2, 1, 0] * 10})
    return hc.release(hc.plan(schema, "<=2-way", epsilon=1, neighbours="add-remove"), data)


@pytest.fixture
def written(release, tmp_path):
    return hc.report(release, tmp_path / "page.html").read_text(encoding="utf-8")


def block(text, name):
    return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.DOTALL)[1])


def test_labels_and_names_stay_text(written):
    catalogue = block(written, "source")["catalogue"]
    assert catalogue["attributes"][0]["labels"] == EVIL and catalogue["name"] == "</title><script>x"
    assert written.count("<script>") == 2 and "alert(" not in re.sub(r"\\u003c.*", "", written)
    assert "<title>&lt;/title&gt;&lt;script&gt;x</title>" in written
    assert "\u2028" not in written


def test_its_policy_allows_its_own_scripts_and_nothing_else(written):
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', written)[1].replace(
        "&#x27;", "'"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and rules["connect-src"] == "'none'"
    assert "unsafe" not in policy and "*" not in policy and "http" not in policy
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        inline = re.findall(rf"<{tag}>(.*?)</{tag}>", written, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in inline]
        assert rules[rule].split() == [f"'sha256-{each}'" for each in hashes]
    assert not re.search(
        r"""\b(src|href)\s*=\s*["'](?!#|data:)""", re.sub(r"<script.*?</script>", "", written, flags=re.DOTALL)
    )


def test_groups_hold_every_table(written, release):
    catalogue = block(written, "source")["catalogue"]
    for entry in catalogue["tables"]:
        (told,) = block(written, f"group-{entry['key']}")[entry["word"]]
        assert "low" not in told and len(told["values"]) == release.table(entry["word"]).values.size


def test_large_tables_lie_beside_the_page(release, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MOST_EMBEDDED", 100)
    monkeypatch.setattr(page, "GROUP", 100)
    with pytest.raises(hc.OutputError, match=r"too much for one file.*name a folder"):
        hc.report(release, tmp_path / "page.html")
    folder = hc.report(release, tmp_path / "site")
    files = sorted(path.name for path in (folder / "data").iterdir())
    assert files == ["0.js", "1.js", "2.js", "3.js"] and not (tmp_path / "page.html").exists()
    assert (folder / "data" / "1.js").read_text(encoding="utf-8").startswith('hushcubeGroup(1,{"')


def test_tables_beside_the_page_are_written_as_they_come(release, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MOST_EMBEDDED", 100)
    monkeypatch.setattr(page, "GROUP", 100)
    every, written = Documents.every, []

    def watched(documents):
        for table in every(documents):
            written.append(len(list(tmp_path.glob("*/data/*.js")) + list(tmp_path.glob(".*/data/*.js"))))
            yield table

    monkeypatch.setattr(Documents, "every", watched)
    hc.report(release, tmp_path / "site")
    assert written[-1] > 0


def test_too_many_tables_are_for_the_explorer(release, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MOST_LISTED", 3)
    with pytest.raises(hc.TooLarge, match="hushcube explore"):
        hc.report(release, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(release, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(hc.OutputError, match="exists"):
        hc.report(release, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "mine"


def test_a_missing_extra_is_named(release, tmp_path, monkeypatch, real_vega):
    monkeypatch.setattr(page, "vega", real_vega)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(hc.MissingDependency, match=r"hushcube\[report\]"):
        hc.report(release, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ['import x from "./b.js";', "export default 1;", "export { a };", 'import "./b.js";'], ids=lambda text: text
)
def test_what_cannot_be_joined_is_refused(text):
    with pytest.raises(ValueError, match=r"a\.js"):
        joined("a.js", {"a.js": text, "b.js": ""}.__getitem__)


def test_modules_that_import_each_other_are_refused():
    files = {"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";\nexport const b = 1;'}
    with pytest.raises(ValueError, match=r"a\.js imports b\.js imports a\.js"):
        joined("a.js", files.__getitem__)
