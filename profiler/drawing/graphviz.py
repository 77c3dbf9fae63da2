"""Run dot of Graphviz in a process of its own, with limited time and memory.

The system's dot is used where there is one, otherwise the port of it that comes with bsplib, which
writes no PDF. For some graphs dot would take hours or all memory, so neither is left to it.
On Windows only the time is limited.
"""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

from bsplib.errors import BspError
from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYOUT_SECONDS = 20
"""Time limit of a layout."""
_MEMORY_BYTES = 2 << 30
_LIMITED = f"""
import os, resource, sys
limits = {{resource.RLIMIT_AS: {_MEMORY_BYTES}, resource.RLIMIT_CPU: int(sys.argv[1])}}
for kind, most in limits.items():
    try:
        resource.setrlimit(kind, (most, most))
    except (OSError, ValueError):
        pass  # this system has no such limit
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Limits memory and, since its parent may be killed before it, also CPU time."""
_PORT = "graphviz-pure"
"""The command of the port, of the package of this name."""


class LayoutError(BspError):
    """No layout of a call graph could be computed."""


class NoDotError(LayoutError):
    """No dot is installed that writes the format."""


def run_dot(
    source: str | Sequence[str], output: str = "svg", *, limit_s: float | None = None
) -> bytes:
    """Lay out a graph, or several in one process, and return the drawing.

    Args:
        source: the graph in DOT; of several graphs, the drawings follow one another.
        output: format of the drawing, one of those of dot, such as ``svg`` or ``pdf``.
        limit_s: time limit in seconds; default: ``LAYOUT_SECONDS``.

    Raises:
        LayoutError: dot failed or exceeded its time limit; the text continues a sentence.
        NoDotError: no dot is installed that writes the format; the text is a sentence.
    """
    limit_s = LAYOUT_SECONDS if limit_s is None else limit_s
    sources = [source] if isinstance(source, str) else source
    line = [_dot_for(output), f"-T{output}"]
    if importlib.util.find_spec("resource"):  # not on Windows
        limits = ["-S", "-I", "-c", _LIMITED, str(math.ceil(limit_s) + 1)]
        line = [sys.executable, *limits, *line]
    try:
        done = subprocess.run(
            line,
            input="\n".join(sources).encode(),
            capture_output=True,
            check=False,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise LayoutError(f"dot did not finish within {limit_s:g} s") from None
    if done.returncode or not done.stdout:
        *_, last = done.stderr.decode(errors="replace").strip().splitlines() or [""]
        raise LayoutError(
            f"dot failed (status {done.returncode}) {fmt.visible(last[-200:])}".rstrip()
        )
    return done.stdout


def _dot_for(output: str) -> str:
    """Return the program that draws in a format."""
    if found := shutil.which("dot"):
        return found
    if output == "pdf":
        raise NoDotError(
            "only dot of Graphviz writes PDF, and it is not installed; export svg or png"
        )
    scripts = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", "")))
    if found := shutil.which(_PORT, path=scripts):
        return found
    raise NoDotError(f"neither dot of Graphviz nor {_PORT} is installed; install one of them")
