import hashlib
import json
import stat
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from hushcube.errors import ServerError
from hushcube.server.tokens import Tokens

GIVEN = {"role": "analyst", "accounts": ["stays"], "share": "0.5"}


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path / "tokens.json")


def test_a_token_is_found_by_its_text_alone(tokens):
    text = tokens.create("dana", **GIVEN)
    other = tokens.create("erik", **GIVEN)
    found = tokens.find(text)
    assert (found.name, found.role, found.accounts, found.share) == ("dana", "analyst", ("stays",), Fraction(1, 2))
    swapped = f"dana.{other.partition('.')[2]}"
    for wrong in ("", "dana", "dana.", text[:-1], text + "x", swapped, "nobody." + text, ".", "nobody."):
        assert tokens.find(wrong) is None


def test_only_a_hash_is_kept_for_the_owners_eyes(tokens):
    text = tokens.create("dana", **GIVEN)
    secret = text.partition(".")[2]
    assert len(secret) >= 43  # 256 bits, six in a character
    kept = tokens.place.read_text()
    assert secret not in kept and hashlib.sha256(secret.encode()).hexdigest() in kept
    assert stat.S_IMODE(tokens.place.stat().st_mode) == 0o600
    assert secret not in repr(tokens.find(text)) + str(tokens.find(text).to_dict())


def test_secrets_are_compared_in_constant_time(tokens, monkeypatch):
    import hmac

    compared = []
    same = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(a) or same(a, b))
    text = tokens.create("dana", **GIVEN)
    assert tokens.find(text) and not tokens.find("nobody.x") and len(compared) == 2


def test_another_process_revokes(tokens):
    text = tokens.create("dana", **GIVEN)
    assert tokens.find(text)
    Tokens(tokens.place).revoke("dana")
    assert tokens.find(text) is None
    assert [token.revoked is not None for token in tokens.list()] == [True]
    again = tokens.create("dana", **GIVEN)  # a new one of the same name
    assert tokens.find(again) and not tokens.find(text)


def test_a_token_expires(tokens, monkeypatch):
    text = tokens.create("dana", **GIVEN, days=1)
    token = tokens.find(text)
    assert token.is_valid(datetime.now(UTC) + timedelta(hours=23))
    assert not token.is_valid(datetime.now(UTC) + timedelta(hours=25))
    assert tokens.find(tokens.create("erik", **GIVEN, days=1e-10)) is None


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": "Dana!"}, "name"),
        ({"name": ""}, "name"),
        ({"role": "king"}, "role"),
        ({"accounts": []}, "account"),
        ({"share": None}, "share"),
        ({"share": "-1"}, "share"),
        ({"share": "much"}, "share"),
        ({"role": "reader"}, "share"),
        ({"days": 0}, "days"),
        ({"days": float("nan")}, "days"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(changed, field, tokens):
    with pytest.raises(ServerError) as refused:
        tokens.create(**{"name": "dana", **GIVEN} | changed)
    assert refused.value.field == field and not tokens.place.exists()


def test_two_tokens_of_one_name_are_refused(tokens):
    tokens.create("dana", **GIVEN)
    with pytest.raises(ServerError, match="already"):
        tokens.create("dana", **GIVEN)
    with pytest.raises(ServerError, match="no token"):
        tokens.revoke("erik")


def test_a_file_that_others_can_read_is_refused(tokens):
    text = tokens.create("dana", **GIVEN)
    tokens.place.chmod(0o640)
    with pytest.raises(ServerError, match="others"):
        Tokens(tokens.place).find(text)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"hushcube_tokens": 2, "tokens": []}', '{"hushcube_tokens": 1, "tokens": [{}]}']
)
def test_a_damaged_file_is_refused(content, tokens):
    tokens.create("dana", **GIVEN)
    tokens.place.write_text(content)
    with pytest.raises(ServerError, match="damaged"):
        tokens.list()


def test_the_file_is_as_documented(tokens):
    tokens.create("dana", **GIVEN, days=2)
    (kept,) = json.loads(tokens.place.read_text())["tokens"]
    assert set(kept) == {"name", "role", "accounts", "share", "created", "expires", "revoked", "sha256"}
    assert kept["share"] == "0.5"
