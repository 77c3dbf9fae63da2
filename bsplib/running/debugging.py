"""``breakpoint()`` in the real processes of a run, of which none has the keyboard.

On virtual processors it works as anywhere: they live in the process that has the terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from bsplib.errors import UsageError

TERMINAL = "/dev/tty"
"""The terminal of a process, whatever its standard input and output are."""


class breakpoints:  # noqa: N801  # used like a function, in a with statement
    """Let ``breakpoint()`` do what this process can do, inside the block.

    A hook that the program has set, and the variable PYTHONBREAKPOINT, stay in force.

    Args:
        debugged: the process that is debugged in the terminal, where one is.
        pid: this process.
    """

    def __init__(self, debugged: int | None, pid: int) -> None:
        self._debugged, self._pid = debugged, pid

    def __enter__(self) -> None:
        self._before = sys.breakpointhook
        if self._before is sys.__breakpointhook__ and "PYTHONBREAKPOINT" not in os.environ:
            sys.breakpointhook = _hook(self._debugged, self._pid)

    def __exit__(self, *_: object) -> None:
        sys.breakpointhook = self._before


def _hook(debugged: int | None, pid: int) -> Callable[..., Any]:
    def debug(*_: Any, **__: Any) -> None:
        import pdb  # noqa: PLC0415  # few runs need it

        try:
            keyboard, screen = open(TERMINAL), open(TERMINAL, "w")  # noqa: SIM115  # they stay open
        except OSError as error:
            raise UsageError(
                f"breakpoint: process {pid} has no terminal ({error.strerror}); use backend='sim'"
            ) from None
        pdb.Pdb(stdin=keyboard, stdout=screen, nosigint=True).set_trace(sys._getframe(1))

    def refuse(*_: Any, **__: Any) -> None:
        raise UsageError(
            f"breakpoint: process {pid} cannot read what you type; start the script by "
            f"bsp run --debug {pid}, or run it with backend='sim'"
        )

    def pass_by(*_: Any, **__: Any) -> None:
        """Do nothing: another process is debugged."""

    if debugged is None:
        return refuse
    return debug if debugged == pid else pass_by
