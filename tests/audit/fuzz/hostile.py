"""Texts, numbers and tokens that programs are known to stumble over."""

from random import Random
from typing import Any

CANARY = "qz7731"
"""Stands in the data wherever the data is wrong, and in passwords; it may never come out."""

TEXTS = (
    "", " ", "\t", "\n", "x\ny", "\r\n", "\x00", "a\x00b", "\x07", "\x1b[2J", "\x1b]0;t\x07", "\x7f", "\x85", "\x9b31m",
    "\u200b", "\u200f", "\u202e", "a\u202eb", "\u2066x\u2069", "\u2028", "\ufeff", "\ufffe", "e\u0301", "é", "ß", "ı",
    "İ", "名", "😀", "\U0010ffff", "\udcff", "a" * 300, "b" * 10_001, "*", ",", ":", "=", "@", "#", "'", '"', "\\", "`",
    "|", "**bold**", "# head", "[x](y)", "<b>", "&amp;", "[red]x[/red]", "{x}", "{0}", "%s", "%n", "$(x)", "--", "-",
    "--help", "NaN", "nan", "null", "None", "true", "no", "0", "-0", "1", "01", "1.0", "1e999", "1_0", "٣", "２", "½",
    "total", "count", "value", "std_error", "query", "queries", "workload", "cube", "auto", "all", "unbiased",
    "face-valid", "error", "own", "NOT PRIVATE", "other", "missing", "data", ".", "..", "../x", "x/y", "./", "/",
    "/nonexistent/x", "con", ".hidden",
)  # fmt: skip

NUMBERS = (
    "0", "-0", "1", "2", "3", "-1", "0.5", "1.5", "100", "500", "501", "1000", "1e-9", "1e-10", "1e-300", "1e-400",
    "5e-324", "1e9", "1e18", "1e308", "1e309", "-1e308", "1e99999", "1e999999999", "1e-999999999", "nan", "NaN", "-nan",
    "inf", "-inf", "Infinity", "1/3", "1/0", "0/1", "-1/3", "1/" + "9" * 400, "9" * 30, "9" * 400, "9" * 5000,
    "0." + "0" * 400 + "1", "0x10", "0b1", "1_000", "1,5", "1.", ".5", "+1", " 1 ", "1e", "e1", "٣", "１", "²", "½",
    "1%", "50%", "-5%", "1e400%", "nan%", "%", "find", "", "true", "None", "2147483648", "9223372036854775807",
    "9223372036854775808", "18446744073709551616",
)  # fmt: skip

WHOLE = ("0", "1", "2", "3", "7", "-1", "1.5", "1e3", "nan", "", "x", "٣", "1_0", "+2", " 2", "9" * 30, "9" * 5000)
"""Where whole numbers are asked for and large ones would rightly take long: nothing between a few and the absurd."""

TOKENS = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e400", "0x10", "01", "-0", "-0.0", "1.0", "1E2", "9" * 25,
    "9" * 400, "9" * 5000, "-" + "9" * 25, "9223372036854775808", "18446744073709551616", "1e-400", "0.1e-300",
    "[" * 500 + "]" * 500, "[" * 100_000, '{"a":' * 300 + "1" + "}" * 300, "{}", "[]", "[[]]", "[null]", "[{}]", "null",
    "true", "false", '""', '"\\ud800"', '"\\u0000"', "'x'", "undefined", "", ",", "]", "}", '"open',
)  # fmt: skip
"""Written into a document as they stand; some end it."""

YAML_TOKENS = (
    *TOKENS, "yes", "no", "~", "2020-01-31", "12:30", "010", "1_000", ".inf", ".nan", "!!python/object:os.system x",
    "!!bool x", "!!int x", "!!float x", "!!timestamp x", "!!binary x", "!!set {a}", "!!omap [a: 1]", "&a [*a]",
    "*nobody", "&a {<<: *a}", "? x", "{? [a]: 1}", "{[a]: 1}", "| x", "- x", "%YAML 9.9", "--- x", "...", "!x y", "@x",
    "`x`", "\t", "&a [1,1], *a",
)  # fmt: skip


def anything(rng: Random) -> Any:
    """A value of any type that JSON knows."""
    return rng.choice(
        (
            lambda: rng.choice(TEXTS),
            lambda: rng.choice((0, 1, -1, 2, 7, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, -(10**30))),
            lambda: rng.choice((0.0, -0.0, 0.5, 1.5, -1.5, 1e-300, 1e300, 1e308, 5e-324, 0.1 + 0.2)),
            lambda: rng.choice((None, True, False)),
            lambda: rng.choice(([], {}, [[]], [None], ["a", "a"], {"a": 1}, {"": ""}, [1, "1", 1.0, True], ["x"] * 50)),
        )
    )()


def scribble(rng: Random, text: str) -> str:
    """A text with a character or two dropped, doubled, exchanged or put in."""
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(text) + 1)
        put = rng.choice(
            ("", text[at : at + 1] * 2, rng.choice("*,:=@()<.-0123 \"'\\/"), rng.choice(TEXTS)[:20], text[:at])
        )
        text = text[:at] + put + text[at + rng.choice((0, 1, 1, 2)) :]
    return text


def damage(rng: Random, content: bytes) -> bytes:
    """Bytes as a bad disk, a bad copy or a bad neighbour leaves them."""
    at = rng.randrange(len(content) + 1)
    kind = rng.randrange(9)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[at:]
    if kind == 2:
        return b""
    if kind == 3:
        return content[:at] + rng.randbytes(rng.choice((1, 4, 16))) + content[at:]
    if kind == 4:
        return content[:at] + content[at + rng.choice((1, 4, 16)) :]
    if kind == 5:
        return content[:at] + bytes(min(64, len(content) - at)) + content[at + 64 :]
    if kind == 6:
        return content + rng.choice((b"\n", b"\x00", content, b"PAR1", rng.randbytes(20)))
    flipped = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if flipped:
            flipped[rng.randrange(len(flipped))] ^= rng.choice((1, 2, 16, 128, 255))
    return bytes(flipped)
