import pytest

from cli.desk import copy_desk, write_desk


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
