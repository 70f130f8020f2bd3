"""Files that a second thread writes and sums up."""

import hashlib
import io

import pytest

from hushcube.bundle import hashed as module
from hushcube.bundle.hashed import Hashed, hashed


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    """So that a few bytes go through all that gigabytes would."""
    for name, size in (("_RUN", 10), ("_BEHIND", 2), ("_UNSENT", 40)):
        monkeypatch.setattr(module, name, size)


def test_the_content_and_its_checksum_are_those_of_what_was_written(tmp_path):
    sums, pieces = {}, [bytes([n]) * n for n in range(30)]
    with hashed(tmp_path / "file", "tables/file", sums) as sink:
        assert [sink.write(piece) for piece in pieces] == list(map(len, pieces))
        sink.flush()
    content = b"".join(pieces)
    assert (tmp_path / "file").read_bytes() == content
    assert sums == {"tables/file": hashlib.sha256(content).hexdigest()}


def test_a_buffer_may_be_used_again(tmp_path):
    buffer = bytearray(b"first")
    with hashed(tmp_path / "file", "file", {}) as sink:
        sink.write(buffer)
        buffer[:] = b"other"
    assert (tmp_path / "file").read_bytes() == b"first"


def test_a_disk_that_refuses_is_reported(tmp_path, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    def written(file, thread):
        return Hashed(Full(), thread)

    monkeypatch.setattr(module, "Hashed", written)
    sums = {}
    with pytest.raises(OSError, match="No space left"), hashed(tmp_path / "one", "one", sums) as sink:
        sink.write(b"few")  # reported in the end
    with pytest.raises(OSError, match="No space left"), hashed(tmp_path / "two", "two", sums) as sink:
        for _ in range(100):  # and before it where there is much
            sink.write(b"many bytes")
        pytest.fail("went on for ever")
    assert not sums


def test_what_failed_has_no_checksum(tmp_path):
    sums = {}
    with pytest.raises(KeyError), hashed(tmp_path / "file", "file", sums) as sink:
        sink.write(b"some bytes")
        raise KeyError
    assert not sums


def test_a_file_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(FileExistsError), hashed(tmp_path / "file", "file", {}):
        pass
    assert (tmp_path / "file").read_bytes() == b"old"
