"""Programs in C that do the least possible, compiled when they are first needed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


def compiler() -> str | None:
    """Return the path of a C compiler; None where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def sample(name: str, *arguments: object) -> float:
    """Run the program ``benchmarks/NAME.c``; return the seconds that it prints."""
    command = [str(_compiled(name)), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


@cache
def _compiled(name: str) -> Path:
    """Compile a program into a folder of its own, for the processor of this computer."""
    found = compiler()
    if found is None:
        raise RuntimeError(f"{name}.c cannot be compiled: there is no cc, gcc or clang")
    program = Path(_temporary().name, name)
    source = _FOLDER / f"{name}.c"
    subprocess.run([found, "-O3", "-march=native", "-o", program, source, "-lm"], check=True)
    return program


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of all compiled programs, which is removed at the end of this process."""
    return tempfile.TemporaryDirectory()
