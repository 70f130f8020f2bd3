import pytest

from server.hospital_desk import Hospital, lay_out


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """One for all tests of a module: what they spend adds up, so none of them relies on what was spent before."""
    with Hospital(lay_out(tmp_path_factory.mktemp("hospital"), rho=5)) as found:
        yield found


@pytest.fixture
def laid_out(tmp_path):
    return lay_out(tmp_path)
