"""Pages without Vega, which takes seconds to put together; tests in a browser have it."""

import pytest

from hushcube.explorer import page, serving

VEGA = page.vega.__wrapped__


@pytest.fixture
def real_vega():
    """What puts it together, without what it remembers."""
    return VEGA


@pytest.fixture(autouse=True, scope="module")
def light():
    with pytest.MonkeyPatch.context() as patch:
        for module in (page, serving):
            patch.setattr(module, "vega", lambda: "window.vega = '</script><!--';")
        yield
