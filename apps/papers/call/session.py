"""What ``bsp papers call`` does: run a program whose comments count, or fit what was measured."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from bsplib.apps.papers.call import comments, counters
from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.experiments.grid import Number, filled
from bsplib.profiler.predict.experiments import Passage, passages
from bsplib.profiler.predict.files import read_lines, timings_of
from bsplib.profiler.predict.show_times import show
from bsplib.profiler.predict.times import fit_timings
from bsplib.recording.trace import read_trace
from bsplib.running.options import overriding
from bsplib.visible import visible


def run(
    script: str,
    arguments: Sequence[str] = (),
    values: Mapping[str, Number] | None = None,
    *,
    counted: Sequence[str] = (),
    **overrides: Any,
) -> list[Passage]:
    """Run a script with the blocks of its comments, without its output.

    Args:
        script: the file.
        arguments: its command line; ``{N}`` stands for the value of N.
        values: for parameters of ``main`` and in the arguments, by name.
        counted: names of counters.
        **overrides: of :class:`bsplib.running.options.Overrides`, such as ``nprocs``.

    Returns:
        The passages of its blocks.

    Raises:
        UsageError: a comment cannot be used, or a value is used nowhere.
        BaseException: what the script raises.
    """
    values, used, before = values or {}, set[str](), sys.argv
    used |= {name for name in values if any(f"{{{name}}}" in each for each in arguments)}
    sys.argv = [script, *(filled(each, values) for each in arguments)]
    with tempfile.TemporaryDirectory(prefix="bsp-call-") as folder:
        trace = Path(folder, "call.bsp")
        prepare = partial(_prepare, tuple(counted))
        more = {"profile": str(trace), "lines": False, "prepare": prepare, "arguments": values}
        _prepare(counted, afresh=False)
        try:
            with (
                overriding(called=used.update, **more, **overrides),
                open(os.devnull, "w", encoding="utf-8") as nowhere,
                redirect_stdout(nowhere),
            ):
                comments.run_script(script)
        except SystemExit as status:
            if status.code not in (None, 0):
                raise
        finally:
            sys.argv = before
            comments.uninstall()
            counters.choose(())
        for name in set(values) - used:
            raise UsageError(
                f"--set {name}: no main that {script} runs has a parameter {name}, and no argument "
                f"of {script} is {{{name}}}"
            )
        runs = read_trace(trace).runs if trace.exists() else ()
        return [each for one in runs for each in passages(one)]


def _prepare(counted: Sequence[str], *, afresh: bool = True) -> None:
    comments.install(afresh=afresh)
    counters.choose(counted)


def print_fits(
    paths: Sequence[Path], points: Sequence[Mapping[str, float]], time: str, formula: str | None
) -> None:
    """Fit the formula of each block to data files, and print the results.

    Args:
        paths: the data files.
        points: at which to predict.
        time: what is fitted: ``"time"``, ``"h"`` or a counter.
        formula: another formula than that of the program.

    Raises:
        UsageError: a file or a formula cannot be used.

    Source: Gonzalez et al., section 3: the analyser llac.
    """
    console, source = Console(), ", ".join(map(str, paths))
    lines = [line for path in paths for line in read_lines(path)]
    for name in dict.fromkeys(line.region for line in lines):
        model = fit_timings(timings_of(lines, source, time, region=name, formula=formula))
        console.print(Text(f"experiment {visible(name)}"))
        show(model, console, [model.predict(point) for point in points])
