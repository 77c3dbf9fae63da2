"""Fences: they make other processes see loads and stores in the order that is needed.

Python has no fence instruction. A lock that is released and acquired again is one, since
both are atomic instructions that no load or store passes; it takes some 70 ns. On x86 most
places need none, because stores become visible in program order and loads are done in
program order. Only a load may be done before an *earlier store* is visible. PROTOCOL.md lists
every fence and says what it is for.
"""

from __future__ import annotations

import ctypes
import platform

from bsplib.core.atomics import STORES_IN_ORDER, full_fence

_MEMBARRIER = {"x86_64": 324, "aarch64": 283, "riscv64": 283}.get(platform.machine())
"""Number of the system call on Linux."""
_QUERY = 0
_GLOBAL_EXPEDITED = 1 << 1
_REGISTER_GLOBAL_EXPEDITED = 1 << 2
_NEEDED = _GLOBAL_EXPEDITED | _REGISTER_GLOBAL_EXPEDITED

_system_call = ctypes.PyDLL(None).syscall  # never waits: no need to release the interpreter's lock
_system_call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_long)
_system_call.restype = ctypes.c_long


class Fences:
    """The fences of one process of a run; only the thread that runs ``main`` uses them."""

    def __init__(self) -> None:
        self.weak = not STORES_IN_ORDER
        """The machine may swap loads or stores, so that :meth:`order` has to do something."""
        self.posts_need_fence = not _can_fence_all()
        """A store for which others may sleep and the next load of WAITED need :meth:`full`."""

    def register(self) -> None:
        """Let others fence this process from now on; called in it, before its first post.

        Raises:
            OSError: the system refuses what it said it could do.
        """
        if not self.posts_need_fence and not _membarrier(_REGISTER_GLOBAL_EXPEDITED):
            raise OSError("membarrier: the system does not register this process")

    def order(self) -> None:
        """Keep the order of loads and stores, except of a store and a later load.

        It is the release fence before a store that others look for, and the acquire fence
        after a load that found such a store. On x86 it does nothing.
        """
        if self.weak:
            self.full()

    def full(self) -> None:
        """Complete all earlier loads and stores, visibly, before any later one."""
        full_fence()

    def all_processes(self) -> None:
        """Fence here, and at some moment of this call in every process of the run, too.

        So the processes that post need no fence of their own. Where the system call is missing
        or forbidden, the caller notices that before the start, and the processes fence at each
        post.
        """
        if self.posts_need_fence:
            self.full()
        else:
            _membarrier(_GLOBAL_EXPEDITED)


def _can_fence_all() -> bool:
    """Tell whether the system can fence all processes that are registered."""
    able = _ask_membarrier(_QUERY)
    return able > 0 and able & _NEEDED == _NEEDED


def _membarrier(command: int) -> bool:
    return _ask_membarrier(command) == 0


def _ask_membarrier(command: int) -> int:
    if _MEMBARRIER is None:
        return -1
    answer: int = _system_call(_MEMBARRIER, command, 0)
    return answer
