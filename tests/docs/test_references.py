"""What comments and docstrings point to exists: files, sections of docs/maths.md, names in the glossary."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "hushcube"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").rglob("*.py")])
MATHS = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
SECTIONS = set(re.findall(r"^## (\d+)\. ", MATHS, flags=re.M)) | set(re.findall(r"^\| ([PN]\d+) \|", MATHS, flags=re.M))


def references(path):
    """Every file in brackets, with a section after a comma; semicolons separate several in one bracket.

    Links of pages that the program writes point to files of a release, not to ours.
    """
    for inside in re.findall(r"\[([^\[\]\n]+)\](?!\()", path.read_text(encoding="utf-8")):
        for item in inside.split(";"):
            if found := re.fullmatch(r"([\w./-]+\.(?:py|md))(?:, (\w+))?", item.strip(" `")):
                yield found.groups()


def named(path):
    return str(path.relative_to(ROOT))


def test_every_file_that_is_pointed_to_exists():
    pointing = [(path, *reference) for path in SOURCES for reference in references(path)]
    assert len(pointing) > 50
    for path, name, section in pointing:
        homes = [home for home in (PACKAGE / name, path.parent / name, ROOT / name) if home.is_file()]
        assert homes, f"{named(path)} points to {name}"
        if name == "docs/maths.md":
            assert section in SECTIONS, f"{named(path)} points to section {section} of {name}"
        elif section is not None:
            assert section in homes[0].read_text(encoding="utf-8")


def test_sections_of_the_maths_page_exist():
    """Also where a sentence names them, such as "docs/maths.md sections 3 and 9"."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for numbers in re.findall(r"docs/maths\.md,? (?:sections? )?(\w+(?: and \w+)*)", text):
            for number in numbers.split(" and "):
                if number.isdigit() or re.fullmatch(r"[PN]\d+", number):
                    assert number in SECTIONS, f"{named(path)} points to section {number}"


def test_nothing_points_outside_the_project():
    outside = "math-" + "notes"
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), PACKAGE / "private" / "README.md"]
    assert not [named(path) for path in (*SOURCES, *pages) if outside in path.read_text(encoding="utf-8")]


def test_names_in_the_glossary_exist():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    symbols = text.split("## Symbols")[1]
    names = re.findall(r"`([\w./]+)`", symbols)
    assert len(names) > 20
    for name in names:
        if "/" in name:
            assert (PACKAGE / name).exists(), name
        else:
            owner, _, field = name.partition(".")
            assert re.search(rf"^(class|def) {owner}\b|^{owner} = ", code, flags=re.M), name
            assert re.search(rf"\b{field}\b", code), name


def test_every_word_is_defined_once():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").split("## Symbols")[0]
    words = [
        word for row in re.findall(r"^\| (\*\*.*?) \|", text, flags=re.M) for word in re.findall(r"\*\*(.+?)\*\*", row)
    ]
    assert len(words) > 60 and len(set(words)) == len(words)
