"""The shim for a library of MPI: that of the wheel, or one that is compiled and kept in a cache.

A wheel for Linux has a shim for each of both binary interfaces. The recorder asks for the library
by its *soname*, such as ``libmpi.so.40``, which the program has loaded before. A shim has to wrap
exactly the calls that the library has, since mpi4py finds out by the symbols which there are.
For another library one is compiled when it is met for the first time.

The key of the cache has the version of the library, its path and all sources. Many ranks may do
this at once: one of them compiles while the others wait at a lock, and the result is renamed into
its place. The shim needs a C compiler and nothing else: no headers of MPI or of Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import sysconfig
from collections.abc import Iterator
from importlib.util import source_hash
from pathlib import Path

from bsplib.record.libraries import Library, NoShimError

_SHIM = Path(__file__).parent / "shim"
_CAME_ALONG = _SHIM
"""Folder of the shims of a wheel; tests name another one."""
_MADE_FROM = (*sorted(each.name for each in _SHIM.glob("*.[ch]")), "functions.py")
SONAMES = {False: "libmpi.so.12", True: "libmpi.so.40"}
"""Names of the library of MPICH, which others with its interface have, too, and of Open MPI's."""


def cache_folder() -> Path:
    """Return the folder of the user where compiled shims are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "bsplib" / "record"


def shim_of(library: Library, cache: Path) -> Path:
    """Return the shim for a library that is loaded, compiled now if there is none.

    Raises:
        NoShimError: there is no compiler, or it fails, or there is no place for the result.
    """
    return _shim_of_wheel(library) or _compiled_shim(library, cache)


def name_in_wheel(*, is_open_mpi: bool) -> str:
    """Return the name of the file of a shim in the folder of its sources."""
    return f"{SONAMES[is_open_mpi]}.shim.so"


def _shim_of_wheel(library: Library) -> Path | None:
    path = _CAME_ALONG / name_in_wheel(is_open_mpi=library.is_open_mpi)
    if not path.exists():
        return None
    try:
        shim = ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except OSError:  # the library lacks a call, or has another name
        return None
    lacks = ctypes.c_char_p.in_dll(shim, "bsp_record_lacks").value or b""
    loaded = ctypes.CDLL(library.path)
    return None if any(hasattr(loaded, name) for name in lacks.decode().split()) else path


def _compiled_shim(library: Library, cache: Path) -> Path:
    path = cache / f"shim-{_key(library)}.so"
    if path.exists():
        return path
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / "lock"):
            if not path.exists():
                from bsplib.record.compiler import compile_shim  # noqa: PLC0415  # loads much

                compile_shim(library, path)
    except OSError as error:
        raise NoShimError(
            f"there is no place for its recorder in {cache}: {error.strerror}"
        ) from None
    return path


def _key(library: Library) -> str:
    files = [*(_SHIM / name for name in _MADE_FROM), _SHIM.parent / "compiler.py"]
    about = f"{library} {sysconfig.get_platform()}".encode()
    return source_hash(b"".join([about, *(file.read_bytes() for file in files)])).hex()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process after the other in; on a file system without locks, all at once."""
    with path.open("wb") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
