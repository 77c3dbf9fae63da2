"""Extra-P, which is installed in an environment of its own, since it needs an older numpy."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bsplib.experiments.formula import read_formula
from bsplib.profiler.predict import Timings, write_timings

COMMAND = Path(os.environ.get("EXTRAP", ".venv/extrap/bin/extrap"))


def is_here() -> bool:
    """Tell whether Extra-P is installed where ``make bench-prediction`` installs it."""
    return COMMAND.exists()


def formula_of(timings: Timings, settings: Mapping[str, Any]) -> str:
    """Return the formula that Extra-P finds for a table, as text.

    Args:
        timings: the table.
        settings: options of its modeler for one variable, by name.
    """
    options = [f"{name}={value}" for name, value in settings.items()]
    if options and len(timings.varied) > 1:
        options = ["#spm=Basic", *(f"#spo={option}" for option in options)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "times.jsonl")
        write_timings(timings, path)
        command = [str(COMMAND), "--json", str(path), "--disable-progress"]
        command += ["--print", "functions-python"]
        done = subprocess.run(
            [*command, *(["--options", *options] if options else [])],
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout.strip()


def predicted(formula: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the values of such a formula."""
    found = read_formula(f"({formula})*extrap[0]").columns(values)[0][:, 0]
    return np.broadcast_to(found, np.shape(next(iter(values.values()))))  # it may be constant
