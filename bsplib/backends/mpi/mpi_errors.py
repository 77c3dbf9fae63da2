"""What an error of MPI means: most often, that another process has died."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mpi4py import MPI

from bsplib.backends.base import Stopped
from bsplib.errors import BspError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def noticing_deaths(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a method of a port raise no error of MPI: Stopped where a process has died, or BspError.

    The caller of the run could not read an error of MPI without joining an MPI itself. After this
    error, and after any other than those two, nothing is known of what MPI was doing.
    """

    @functools.wraps(method)
    def noticing(*args: _Arguments.args, **more: _Arguments.kwargs) -> _Result:
        try:
            return method(*args, **more)
        except (Stopped, BspError):
            raise
        except BaseException as error:
            port: Any = args[0]
            port.note_broken()
            if not isinstance(error, MPI.Exception):
                raise
            port.await_stop()
            raise BspError(f"{method.__name__}: MPI has failed: {error}") from None

    return noticing
