"""The applications compared with their peers, and the cost of recording them.

``python -m benchmarks.bench_apps`` writes ``benchmarks/results/apps.json``.
"""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks.command import Benchmark, run
from benchmarks.harness import Section

MODULES = ("apps_sorts", "apps_queries", "apps_fft", "apps_predictions", "apps_recording")
"""Modules of this package, each with a function ``sections()``."""


def _sections() -> list[Section]:
    found: list[Section] = []
    for name in MODULES:
        try:
            found += import_module(f"benchmarks.{name}").sections()
        except ModuleNotFoundError as error:
            if error.name != f"benchmarks.{name}":
                raise
            print(f"benchmarks/{name}.py does not exist and is left out", file=sys.stderr)
    return found


BENCHMARK = Benchmark("apps", _sections())

if __name__ == "__main__":
    run([BENCHMARK])
