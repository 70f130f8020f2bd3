import pytest


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_compiled():
    """Calls are counted, and signals come at the first that renames: keeping compiled code must not be among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        yield
