"""`hushcube token` and `hushcube serve`: what they print, and what they refuse."""

import json
import stat

import pytest

GIVEN = ("--role", "analyst", "--account", "stays", "--share", "0.5")


@pytest.fixture
def tokens(tmp_path):
    return ("--tokens", str(tmp_path / "tokens.json"))


def run(capsys, *arguments):
    from hushcube.cli import run as command

    code = command(list(arguments))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_tokens_are_created_listed_and_revoked(tokens, capsys):
    code, made, said = run(capsys, "token", "create", "dana", *tokens, *GIVEN)
    assert code == 0 and made.startswith("dana.") and "only time" in said
    code, listed, _ = run(capsys, "token", "list", *tokens, "--json")
    (one,) = json.loads(listed)
    assert (one["name"], one["role"], one["accounts"], one["share"]) == ("dana", "analyst", ["stays"], "0.5")
    assert made.strip().partition(".")[2] not in listed
    code, revoked, _ = run(capsys, "token", "revoke", "dana", *tokens)
    assert code == 0 and revoked == "revoked: dana\n"
    code, shown, _ = run(capsys, "token", "list", *tokens)
    assert code == 0 and "dana" in shown and "stays" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("token", "create", "dana", "--role", "king", "--account", "stays", "--share", "1"), "--role"),
        (("token", "create", "dana", "--role", "analyst", "--account", "stays"), "--share: is not given"),
        (("token", "create", "dana", "--role", "reader"), "--account: is not given"),
        (("token", "revoke", "nobody"), "name: there is no token"),
        (("token", "list"), "--tokens"),
        (("serve", "--audit", "audit.jsonl"), "--tokens"),
        (("serve", "nowhere", "--audit", "audit.jsonl", "--host", "0.0.0.0"), "--host: tokens and answers"),
        (("serve", "nowhere", "--audit", "audit.jsonl", "--tls-cert", "cert.pem"), "--tls-cert: and `--tls-key`"),
        (("serve", "nowhere", "--audit", "audit.jsonl", "--rate", "0"), "--rate: is not positive"),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said(arguments, said, tokens, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments, *tokens)
    assert code == 2 and said in err and not out
    assert not list(tmp_path.iterdir())


def test_a_file_of_tokens_is_needed_and_is_the_owners(tokens, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(capsys, "token", "create", "dana", *tokens, *GIVEN)
    place = tmp_path / "tokens.json"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    code, _, err = run(capsys, "serve", "nowhere", *tokens, "--audit", "audit.jsonl", "--port", "0")
    assert code == 2 and "session" in err
    place.chmod(0o644)
    code, _, err = run(capsys, "serve", "nowhere", *tokens, "--audit", "audit.jsonl")
    assert code == 2 and "others" in err and not (tmp_path / "audit.jsonl").exists()
