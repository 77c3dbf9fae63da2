"""Which library of MPI mpi4py is going to load, found without loading mpi4py.MPI.

The shim has to be loaded before the extension module, whose calls of MPI are otherwise bound
already. mpi4py's wheels look for a library when they are imported, and their search is used here;
where mpi4py was compiled for one MPI, another process is asked, once.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

from bsplib.record.program import OF_BSPLIB


class NoShimError(Exception):
    """Nothing can be recorded; the text says why, as the end of a sentence."""


class Library(NamedTuple):
    """A library of MPI."""

    path: str
    is_open_mpi: bool
    version: str

    @property
    def name(self) -> str:
        """Name of the implementation."""
        return "Open MPI" if self.is_open_mpi else self.version.split(" Version")[0]


class _Place(ctypes.Structure):
    """What dladdr tells about an address."""

    _fields_ = [  # as ctypes wants it
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def path_of(function: object) -> str:
    """Return the path of the library that has a function."""
    place = _Place()
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(place))  # type: ignore[arg-type]
    return os.path.realpath(os.fsdecode(place.file))


def find_library(cache: Path) -> Library:
    """Return the library that ``from mpi4py import MPI`` loads in this process.

    Args:
        cache: folder for what another process has found out.

    Raises:
        NoShimError: it cannot be told.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise NoShimError(f"mpi4py is not installed; {OF_BSPLIB}")
    mpi4py = importlib.import_module("mpi4py")
    folder = Path(str(mpi4py.__file__)).parent
    compiled = [
        path for path in folder.glob("MPI.*.so") if path.name.startswith(("MPI.cp", "MPI.ab"))
    ]
    try:
        if compiled:
            library = ctypes.CDLL(
                _ask_process(compiled[0], cache), mode=os.RTLD_LOCAL | os.RTLD_LAZY
            )
        else:
            search = importlib.import_module("mpi4py._mpiabi")
            library = search._dlopen_libmpi(os.environ.get("MPI4PY_LIBMPI"))
        return _described(library)
    except (RuntimeError, OSError, AttributeError) as error:
        raise NoShimError(f"the library of MPI is not found: {error}") from None


def _described(library: ctypes.CDLL) -> Library:
    text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
    library.MPI_Get_library_version(text, ctypes.byref(length))
    version = text.value.decode(errors="replace").splitlines()[0].strip()
    is_open_mpi = hasattr(library, "ompi_mpi_comm_self")
    if (
        not is_open_mpi
        and getattr(library, "MPI_Abi_get_version", None)
        and "_abi" in library._name
    ):
        raise NoShimError(
            "its MPI has the new standard interface; MPI4PY_LIBMPI can name another one"
        )
    return Library(path_of(library.MPI_Send), is_open_mpi, version)


_QUESTION = """
import mpi4py; mpi4py.rc.initialize = mpi4py.rc.finalize = False
import ctypes; from mpi4py import MPI; from bsplib.record.libraries import path_of
print(path_of(ctypes.CDLL(MPI.__file__).MPI_Send))
"""


def _ask_process(module: Path, cache: Path) -> str:
    """Return the library with which an extension module was linked."""
    note = cache / "linked.json"
    key = f"{module} {module.stat().st_mtime_ns} {os.environ.get('LD_LIBRARY_PATH', '')}"
    try:
        known: dict[str, str] = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    if key not in known:
        import subprocess  # noqa: PLC0415  # loads much, and is needed once for each installation

        done = subprocess.run(
            [sys.executable, "-c", _QUESTION], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(done.stderr.strip().rpartition("\n")[2] or "mpi4py.MPI is not imported")
        known[key] = done.stdout.strip()
        _replace(note, json.dumps(known).encode())
    return known[key]


def _replace(path: Path, content: bytes) -> None:
    """Write a file of the cache at once; it is only a cache."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
