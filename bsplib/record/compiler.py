"""Compiles the shim; a rank loads this only where it has not been compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bsplib.record.libraries import Library, NoShimError


def compile_shim(library: Library, options: tuple[str, ...], path: Path) -> None:
    """Compile the shim for a library, with options of the compiler, into a file.

    Raises:
        NoShimError: there is no compiler, or it fails.
    """
    compiler = _compiler()
    temporary = path.with_name(f".{path.stem}.{os.getpid()}")
    source, result = temporary.with_suffix(".c"), temporary.with_suffix(".so")
    folder, name = os.path.split(library.path)
    try:
        source.write_text(_source(library), encoding="utf-8")
        linked = [f"-L{folder}", f"-l:{name}", f"-Wl,-rpath,{folder}", "-pthread"]
        done = subprocess.run(
            [compiler, *options, str(source), "-o", str(result), *linked],
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
