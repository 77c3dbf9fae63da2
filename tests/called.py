"""A plugin of pytest for mutants.py: it writes which functions of the product each test calls.

Only this process and its threads are watched. Most tests run their programs in the simulator, and
what processes of the system call is called by virtual ones, too.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = "called.json"
"""The file that is written, in the root of the tree."""
PRODUCT = ("bsplib", "profiler", "webui", "apps")


@cache
def place(file: str) -> str | None:
    """Return the path of a file of the product from the root; None for all others."""
    path = os.path.relpath(os.path.realpath(file), ROOT)
    return path if path.partition("/")[0] in PRODUCT else None


class Watch:
    """Which tests call a function, and how long each test takes."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._tests: dict[str, float] = {}
        self._callers: dict[str, list[int]] = defaultdict(list)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note the functions that a test, or a fixture that it is the first to use, calls."""
        codes: dict[int, CodeType] = {}

        def note(frame: FrameType, event: str, arg: object) -> None:
            code = frame.f_code
            if id(code) not in codes:  # the hash of a code object takes long
                codes[id(code)] = code

        began = time.process_time()
        threading.settrace(note)
        sys.settrace(note)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type] # as the documentation says
            number = len(self._tests)
            self._tests[item.nodeid] = round(time.process_time() - began, 3)
            seen = list(codes.values())  # threads of the test may still add to it
            for function in {f"{place(code.co_filename)}:{code.co_firstlineno}" for code in seen}:
                if not function.startswith("None:"):
                    self._callers[function].append(number)

    def pytest_unconfigure(self) -> None:
        """Write what was noted."""
        if os.getpid() == self._pid:
            outcome = {"tests": list(self._tests.items()), "callers": self._callers}
            (ROOT / FILE).write_text(json.dumps(outcome), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Watch all tests of this session."""
    config.pluginmanager.register(Watch())
