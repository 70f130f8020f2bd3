"""What tests in a browser share: a release that is served, and what axe-core finds on a page."""

import threading
from contextlib import contextmanager

from hushcube.explorer.documents import Documents
from hushcube.explorer.serving import HOST, application
from hushcube.web.addresses import listening_at


def serious(page):
    """What keeps people from using a page, as axe-core sees it."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]


@contextmanager
def explored(release):
    """The address at which a release is served while tests look at it."""
    from hushcube.web.connection import Server, configured

    with listening_at(HOST, 0) as listening:
        port, started = listening.getsockname()[1], threading.Event()
        config = configured(application(Documents(release), port))
        server = Server(config, f"http://{HOST}:{port}", lambda _: started.set())
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            assert started.wait(30)
            yield f"http://{HOST}:{port}"
        finally:
            server.should_exit = True
            thread.join(30)
