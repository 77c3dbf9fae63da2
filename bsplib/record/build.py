"""Compiles the shim when a library of MPI is met for the first time, and keeps it in a cache.

The key of the cache has the version of the library, its path and all sources. Many ranks may do
this at once: one of them compiles while the others wait at a lock, and the result is renamed into
its place. The shim needs a C compiler and nothing else: no headers of MPI or of Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

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
                _compile(library, path)
    except OSError as error:
        raise NoShimError(f"there is no place for it in {cache}: {error.strerror}") from None
    return path


def _key(library: Library) -> str:
    digest = hashlib.sha256(f"{library} {sysconfig.get_platform()} {_OPTIONS}".encode())
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


def _compile(library: Library, path: Path) -> None:
    compiler = _compiler()
    temporary = path.with_name(f".{path.stem}.{os.getpid()}")
    source, result = temporary.with_suffix(".c"), temporary.with_suffix(".so")
    folder, name = os.path.split(library.path)
    try:
        source.write_text(_source(library), encoding="utf-8")
        linked = [f"-L{folder}", f"-l:{name}", f"-Wl,-rpath,{folder}", "-pthread"]
        done = subprocess.run(
            [compiler, *_OPTIONS, str(source), "-o", str(result), *linked],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            reason = done.stderr.strip().splitlines() or ["no reason is given"]
            raise NoShimError(f"{compiler} fails: {reason[0]}")
        result.replace(path)
    finally:
        source.unlink(missing_ok=True)
        result.unlink(missing_ok=True)


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise NoShimError("there is no C compiler (cc, gcc, clang, or what CC names)")


def _source(library: Library) -> str:
    """Generate the source in another process: it loads numpy, which a rank need not."""
    done = subprocess.run(
        [sys.executable, "-m", "bsplib.record.shim.generate", library.path]
        + ["open-mpi"] * library.is_open_mpi,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise NoShimError(f"its source is not generated: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout
