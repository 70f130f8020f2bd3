"""The page docs/audit.md: what stands above the mark is written by hand, the figures below it by the audit."""

PARTS = {
    "exact": "audit.exact",
    "costs": "audit.costs",
    "replay": "audit.replay",
    "statistical": "audit.statistical",
    "mutants": "audit.mutants",
    "fuzz": "audit.fuzz.driver",
    "damage": "audit.damage",
    "faults": "faults.figures",
    "ledgers": "faults.ledgers",
}
"""The module of each part, in the order of the page."""
MARK = "<!-- figures: written by `make audit` -->"


def write_page(page, kept):
    """Replace what stands below the mark by the sections of the parts that were run."""
    head, _, _ = page.read_text(encoding="utf-8").partition(MARK)
    sections = "\n".join(section(found) for found in kept.values())
    page.write_text(f"{head}{MARK}\n\n{sections}", encoding="utf-8")


def section(found):
    """One part's text.

    >>> print(section({"title": "T", "attacked": "A.", "how": "H.", "figures": {"runs": 1200}, "violations": 0}))
    ## T
    <BLANKLINE>
    A.
    <BLANKLINE>
    H.
    <BLANKLINE>
    | figure | value |
    |---|---|
    | runs | 1,200 |
    | violations | 0 |
    <BLANKLINE>
    """
    texts = [f"## {found['title']}", found["attacked"], found["how"]]
    if found.get("scale") == "short":
        texts.append("These are the figures of the short form, as in `make test`.")
    if "false_alarms" in found:
        texts.append(f"False alarms: {found['false_alarms']}")
    texts.append(table(["figure", "value"], [*found["figures"].items(), ("violations", found["violations"])]))
    if "table" in found:
        texts.append(table(found["table"]["columns"], found["table"]["rows"]))
    return "\n\n".join(texts) + "\n"


def table(columns, rows):
    """A table in Markdown."""
    lines = ["".join(f"| {cell(value)} " for value in row) + "|" for row in (columns, *rows)]
    return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]])


def cell(value):
    """A number or a text inside a table.

    >>> cell(20_000), cell(0.9512), cell("a|b")
    ('20,000', '0.951', 'a\\\\|b')
    """
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value).replace("|", "\\|")
