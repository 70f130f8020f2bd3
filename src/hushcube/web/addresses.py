"""Where a server listens."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from hushcube.errors import ServerError


def is_own(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_own("127.0.0.1"), is_own("::1"), is_own("localhost"), is_own("0.0.0.0"), is_own("example.org")
    (True, True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def listening_at(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if not 0 <= port < 2**16:  # which would leave a socket behind
            raise OverflowError
        found = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as problem:
        reason = (
            os.strerror(problem.errno).lower() if isinstance(problem, OSError) and problem.errno else "no such address"
        )
        raise ServerError(
            "port", f"cannot listen at {host}, port {port} ({reason})", "choose another port or host"
        ) from None
    with found:
        yield found
