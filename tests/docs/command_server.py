"""A process that runs the commands of pages, each in a fork of itself.

An interpreter that imports bsplib and the profiler takes a second; a fork has them already.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import shlex
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Self

PRELOADED = [
    "numpy",
    "bsplib.tools.cli.run",
    "bsplib.profiler.profile",
    "bsplib.tools.cli.report",
    "bsplib.tools.cli.export",
    "bsplib.tools.cli.predict",
    "bsplib.profiler.compare",
    "bsplib.profiler.predict",
    "doctest",
]
"""What several pages use."""


class CommandServer:
    """Runs ``python`` and ``bsp`` commands as a shell would, one after the other."""

    def __init__(self) -> None:
        binaries = str(Path(sys.executable).parent)
        environment = os.environ | {
            "PATH": os.pathsep.join([binaries, os.environ["PATH"]]),
            "COLUMNS": "100",
            "PYTHONUNBUFFERED": "1",  # what is printed and what is reported keep their order
        }
        environment.pop("PYTEST_ADDOPTS", None)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, line: str, folder: Path) -> tuple[int, str]:
        """Run a command in a folder; return its exit status, and what it prints."""
        printed = folder / ".printed"
        asked = {"words": shlex.split(line), "folder": str(folder), "printed": str(printed)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return status, printed.read_text(encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate()


def _execute(words: list[str]) -> None:
    """Do what a command says, in this process."""
    program, *arguments = words
    sys.path.insert(0, os.getcwd())
    if program == "bsp":
        sys.argv = words
        importlib.import_module("bsplib.tools.cli").main()
    elif program == "python" and arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif program == "python":
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        raise SystemExit(f"{program}: no command that a page may show with its output")


def _execute_and_exit(words: list[str]) -> None:
    status = 0
    try:
        _execute(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001  # the server reports what a shell would show
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _serve() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    with suppress(ModuleNotFoundError):
        importlib.import_module("scipy.stats")  # it takes a second; quick tests do without it
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            os.chdir(asked["folder"])
            output = os.open(asked["printed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _execute_and_exit(asked["words"])
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


if __name__ == "__main__":
    _serve()
