"""Compiles the shim when a library of MPI is met for the first time, and keeps it in a cache.

The key of the cache has the version of the library, its path and all sources. Many ranks may do
this at once: one of them compiles while the others wait at a lock, and the result is renamed into
its place. The shim needs a C compiler and nothing else: no headers of MPI or of Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from bsplib.record.digest import sha256
from bsplib.record.libraries import Library, NoShimError

_SHIM = Path(__file__).parent / "shim"
_MADE_FROM = (*sorted(each.name for each in _SHIM.glob("*.[ch]")), "functions.py", "generate.py")
_OPTIONS = ("-O1", "-fPIC", "-shared", "-std=gnu11", "-w")


def cache_folder() -> Path:
    """Return the folder of the user where compiled shims are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "bsplib" / "record"


def compiled_shim(library: Library, cache: Path) -> Path:
    """Return the shim for a library, compiled now if it has not been.

    Raises:
        NoShimError: there is no compiler, or it fails, or there is no place for the result.
    """
    path = cache / f"shim-{_key(library)}.so"
    if path.exists():
        return path
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / "lock"):
            if not path.exists():
                from bsplib.record.compiler import compile_shim  # noqa: PLC0415  # loads much

                compile_shim(library, _OPTIONS, path)
    except OSError as error:
        raise NoShimError(f"there is no place for it in {cache}: {error.strerror}") from None
    return path


def _key(library: Library) -> str:
    digest = sha256(f"{library} {sysconfig.get_platform()} {_OPTIONS}".encode())
    for name in _MADE_FROM:
        digest.update((_SHIM / name).read_bytes())
    digest.update((_SHIM.parent / "events.py").read_bytes())
    return digest.hexdigest()[:24]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process after the other in; on a file system without locks, all at once."""
    with path.open("wb") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
