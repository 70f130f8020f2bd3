import json

import pytest

from cli.desk import SECRET, copy_desk, listing, write_desk
from hushcube.cli import run


@pytest.fixture(scope="session")
def written_desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "desk"
    folder.mkdir()
    write_desk(folder)
    return folder


@pytest.fixture
def desk(written_desk, tmp_path, monkeypatch, capsys):
    """The working directory, with everything a publisher has."""
    folder = copy_desk(written_desk, tmp_path / "desk")
    monkeypatch.chdir(folder)
    capsys.readouterr()
    return folder


@pytest.fixture
def drawn(monkeypatch):
    """How many random words were drawn: what a release spends, it spends through them."""
    from hushcube.private.noise.entropy import SystemEntropy

    counts = []
    for name in ("words", "half_words"):
        draw = getattr(SystemEntropy, name)
        monkeypatch.setattr(
            SystemEntropy, name, lambda self, count, draw=draw: (counts.append(count), draw(self, count))[1]
        )
    return counts


@pytest.fixture
def done(desk, capsys):
    """Run a command that must succeed; returns standard output and standard error."""

    def check(*arguments, code=0):
        assert run(list(arguments)) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    return check


@pytest.fixture
def document(done):
    """Run a command with --json: standard output is one document, and nothing else."""

    def read(*arguments, code=0):
        out, err = done(*arguments, "--json", code=code)
        read.err = err
        assert out.endswith("\n") and out.count("\n") == 1
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return read


@pytest.fixture
def refused(desk, drawn, capsys):
    """Run a command that must be refused; returns the message."""

    def check(arguments, *wanted):
        before = listing(desk)
        code = run(arguments)
        captured = capsys.readouterr()
        told = captured.err
        assert code == 2, told
        assert listing(desk) == before
        assert drawn == []
        assert "Fix:" in told or told.startswith(("Usage:", "Error:"))
        for words in wanted:
            assert words in told
        assert SECRET not in told + captured.out
        assert "Traceback" not in told
        return told

    return check
