"""Nothing that a data library says leaves this folder: its messages, causes and tracebacks quote rows.

Every function through which others reach the data is `guarded`. Our own errors pass, since they hold no data; whatever
else is raised, by whichever library, becomes a `DataError` that names the kind of failure and the line of hushcube
where it happened. Both leave without `__cause__`, `__context__` and the frames below the boundary: `from None` only
hides a context, and a logger or debugger that looks for it, or for local variables, would find rows.

Interrupts stay what they are, and so does what the caller's own callbacks raise. A lack of memory or room, and a file
that the system refuses to open, are reported as that. Of the text that a user calls the data, a user, a password, a
token and rows are never repeated.
"""

from __future__ import annotations

import functools
import re
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from hushcube.errors import DataError, HushcubeError
from hushcube.resources import exhausted, unusable

P = ParamSpec("P")
R = TypeVar("R")
PASSING: Final = (HushcubeError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit)
"""What holds no data. Other exceptions that are no `Exception` do: polars panics with such."""
_FOLDER: Final = str(Path(__file__).parents[1])
_PYTHON: Final = sysconfig.get_path("stdlib")
_CALLBACKS: Final = ("progress", "tell_owner", "before_noise")  # arguments that are functions of the caller
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_SECRET: Final = re.compile(r"@|(passw|pwd|token|secret|credential|key)[a-z_]*\s*=", re.IGNORECASE)
_LONGEST: Final = 300


def guarded(work: Callable[P, R]) -> Callable[P, R]:
    """The same function; what it raises holds no data, and no reference to any.

    >>> @guarded
    ... def read():
    ...     return int("secret")
    >>> try:
    ...     read()
    ... except DataError as error:
    ...     print(error.problem, error.__cause__, error.__context__)
    it cannot be read (ValueError) None None
    """

    @functools.wraps(work)
    def guard(*args: P.args, **options: P.kwargs) -> R:
        own: list[BaseException] = []
        for name in _CALLBACKS:
            if callable(callback := options.get(name)):
                options[name] = _noting(callback, own)
        try:
            return work(*args, **options)
        except BaseException as error:
            failure = own[-1] if own else _bare(explained(error))
        del args, options  # they hold the data, and loggers show local variables
        raise failure  # here, after the handler, so that it gets no context

    return guard


def explained(error: BaseException) -> BaseException:
    """What may be said of an exception: itself where it holds no data, else an error that names its kind."""
    if isinstance(error, PASSING):
        return error
    if (known := reported(error)) is not None:
        return known
    fix = "check that all of it can be read, and that each column holds one kind of values"
    return DataError("data", f"it cannot be read ({type(error).__name__}{_place(error)})", fix)


def reported(error: BaseException, files: Sequence[str | Path] = ()) -> HushcubeError | None:
    """What an exception says of the machine. It names a file that is one of `files`, or that we ourselves asked for.

    A library or a function of the caller may open files that a row names.
    """
    named = isinstance(error, OSError) and str(error.filename) in map(str, files)
    return exhausted(error) or unusable(error) if named or _is_ours(error) else exhausted(error, "the disk")


def _is_ours(error: BaseException) -> bool:
    """Whether an exception passed through no code but our own and Python's."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    others = [file for file in files if not file.startswith(_FOLDER)]
    return all(file.startswith(_PYTHON) and "-packages" not in file for file in others)


def _bare(error: BaseException) -> BaseException:
    """An exception without what it came from."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _place(error: BaseException) -> str:
    """The innermost line of hushcube that an exception passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_FOLDER)]
    inner = [frame for frame in frames if frame.filename != __file__]
    return f" at {Path(inner[-1].filename).relative_to(_FOLDER)}:{inner[-1].lineno}" if inner else ""


def _noting(callback: Callable[..., Any], own: list[BaseException]) -> Callable[..., Any]:
    """A callback whose exceptions are noted as the caller's own."""

    def noted(*args: Any) -> Any:
        try:
            return callback(*args)
        except BaseException as error:
            own.append(error)
            raise

    return noted


def shown(text: str) -> str:
    """A path or the name of a table as an error may repeat it; of an address only its kind.

    >>> shown("people.csv"), shown("MySQL://me:secret@host/db"), shown("host=h password=secret")
    ("'people.csv'", 'mysql://...', "'...'")
    """
    if address := _SCHEME.search(text):
        return f"{address[1].lower()}://..."
    if _SECRET.search(text) or not text.isprintable() or len(text) > _LONGEST:  # a text may be the data itself
        return "'...'"
    return repr(text)


def normal(text: str) -> str:
    """An address with its scheme in lower case.

    >>> normal("POSTGRES://Host/db#T")
    'postgres://Host/db#T'
    """
    scheme, mark, rest = text.partition("://")
    return scheme.lower() + mark + rest if mark else text
