"""Text as it may be shown: names and labels are anybody's, and must not steer what shows them; bounds must hold.

short       messages: what was given, in a few characters
visible     terminals, charts, messages: control characters, bidirectional and invisible marks are written out
code        Markdown: a code span, in which nothing is markup
prose       Markdown: a sentence in which nothing is markup
json_text   JSON: the same characters as escapes, which every reader turns back
guarded     CSV: nothing that a spreadsheet takes for a formula; unguarded turns it back
share       a part of a whole, in percent
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any, Final

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that Unicode calls printable, and that nobody can see."""
_MARKUP: Final = re.compile(r"[\\`*_\[\]|~$]")
_FORMULA: Final = re.compile(r"['\t\r\n]|\s*[=+\-@＝＋－＠]")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def short(raw: object) -> str:
    """A few characters of what was given, for a message; YAML's anchors can make a small text a huge list."""
    return repr(raw[:40]) if isinstance(raw, str) else reprlib.repr(raw)[:40]


def number_text(number: float) -> str:
    """The usual digits of a number."""
    return str(int(number)) if number == int(number) else repr(number)


def visible(text: str) -> str:
    """A text on one line, with everything that is not seen as itself written out.

    >>> visible("a\\tb\\x1b[2J é"), visible("total \\u202e001")
    ('a\\\\tb\\\\x1b[2J é', 'total \\\\u202e001')
    """
    return _written_out(text, lambda c: c.encode("unicode_escape").decode("ascii"))


def _written_out(text: str, escape: Callable[[str], str]) -> str:
    return text.translate({ord(c): escape(c) for c in set(text) if not c.isprintable() or c in _BLANK})


def code(text: str) -> str:
    """A Markdown code span that holds the text, whatever it is.

    >>> code("age"), code("a`b\\n# c")
    ('`age`', '``a`b\\\\n# c``')
    """
    shown = visible(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    room = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{fence}{room}{shown}{room}{fence}"


def prose(text: str) -> str:
    """A sentence for Markdown that reads as it is written.

    >>> prose("a*b <i>[c](d)</i>")
    'a\\\\*b &lt;i&gt;\\\\[c\\\\](d)&lt;/i&gt;'
    """
    return _MARKUP.sub(r"\\\g<0>", visible(text)).translate(_ENTITIES)


def json_text(document: Any) -> str:
    """One line of JSON without invisible characters.

    >>> json_text({"label": "é\\u202e\\x9b"})
    '{"label": "é\\\\u202e\\\\u009b"}'
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return _written_out(text, lambda c: json.dumps(c)[1:-1])


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV, with guarded texts; a number that is not known is left empty.

    >>> csv_text([["a", "value"], ['x "y", z', float("nan")], ["=1+1", -5.0]])
    'a,value\\n"x ""y"", z",\\n\\'=1+1,-5.0\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_field(x) for x in row] for row in rows)
    return text.getvalue()


def _field(content: Any) -> Any:
    if isinstance(content, str):
        return guarded(content)
    return "" if isinstance(content, float) and math.isnan(content) else content


def at_most(value: Fraction) -> str:
    """Six significant digits, rounded up: epsilon, rho and delta as a statement gives them.

    >>> at_most(Fraction(1)), at_most(Fraction("100.00049")), at_most(Fraction("1e-9")), at_most(Fraction(2, 3))
    ('1', '100.001', '1e-09', '0.666667')
    """
    return _digits(value, ROUND_CEILING)


def at_least(value: Fraction) -> str:
    """Six significant digits, rounded down: what is left of a budget.

    >>> at_least(Fraction(2, 3)), at_least(Fraction(0))
    ('0.666666', '0')
    """
    return _digits(value, ROUND_FLOOR)


def _digits(value: Fraction, rounding: str) -> str:
    with localcontext(prec=6, rounding=rounding):
        return f"{float(Decimal(value.numerator) / value.denominator):g}"


def share(part: int, whole: int) -> str:
    """A part in percent, such that neither all nor nothing is claimed without being so.

    >>> share(850, 1000), share(1, 10**6), share(0, 9), share(999_999, 10**6)
    ('85.0%', 'under 0.1%', '0%', 'over 99.9%')
    """
    if part in (0, whole):
        return "0%" if part == 0 else "100%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "under 0.1%"
    return f"{percent:.1f}%" if percent < 99.9 else "over 99.9%"


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula when it opens a CSV file: an apostrophe stands before such a one.

    >>> guarded("=1+1"), guarded("'tis"), guarded("-5"), guarded("1-5")
    ("'=1+1", "''tis", '-5', '1-5')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """What it was before: one leading apostrophe is taken away.

    >>> [unguarded(guarded(text)) for text in ("=1+1", "'tis", "-5")]
    ['=1+1', "'tis", '-5']
    """
    return text.removeprefix("'")
