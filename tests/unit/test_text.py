"""Names and labels as they may be shown, and numbers that are promised not to be exceeded."""

import json
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

import helpers  # noqa: F401 - its hypothesis profile
from hushcube.model.privacy import Privacy
from hushcube.text import at_least, at_most, code, json_text, prose, visible

STEERING = [
    *map(chr, range(32)),
    "\x7f",
    *map(chr, range(0x80, 0xA0)),
    *"\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\xad",
    *"\u034f\u115f\u3164\u2800",
    "\U000e0041",
    "\ud800",
]


@pytest.mark.parametrize("c", STEERING, ids=lambda c: f"U+{ord(c):04X}")
def test_what_steers_or_hides_is_written_out(c):
    for shown in (visible(f"a{c}b"), code(f"a{c}b"), prose(f"a{c}b")):
        assert shown.isascii() and shown.isprintable() and "\\" in shown
    assert json_text([f"a{c}b"]).isprintable()


@pytest.mark.slow
@given(st.text())
def test_what_is_shown_stays_on_its_line(text):
    for shown in (visible(text), code(text), prose(text)):
        assert shown.isprintable()
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in shown)
    assert json.loads(json_text({text: [text]})) == {text: [text]}


@given(st.text(alphabet="a`\\ <*", min_size=1))
def test_a_code_span_ends_where_it_should(text):
    shown = code(text)
    fence = len(shown) - len(shown.lstrip("`"))
    inner = shown[fence:-fence]
    assert shown.endswith("`" * fence) and f"`{'`' * (fence - 1)}" not in inner
    assert inner in (text, f" {text} ")


@pytest.mark.parametrize("text", ["plain", "sex = F", "naïve 中文", "a.b-c (d) #1!"])
def test_what_needs_no_escape_is_left_alone(text):
    assert visible(text) == prose(text) == text and code(text) == f"`{text}`"


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=500))
def test_printed_bounds_are_never_exceeded(value):
    assert Fraction(at_most(value)) >= value >= Fraction(at_least(value))
    assert Fraction(at_most(value)) - value <= value / 10**5


@pytest.mark.parametrize(
    "given_, shown", [("100.00049", "100.001"), ("0.1", "0.1"), ("1e-9", "1e-09"), ("1/3", "0.333334")]
)
def test_a_guarantee_is_printed_rounded_up(given_, shown):
    assert str(Privacy.of(epsilon=given_, neighbours="add-remove")).startswith(f"epsilon = {shown}, ")
    assert str(Privacy.of(rho=given_, neighbours="add-remove")).startswith(f"rho = {shown}, ")
