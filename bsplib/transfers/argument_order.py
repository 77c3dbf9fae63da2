"""The order of the arguments of transfers, for errors of calls that have them in another one."""

from __future__ import annotations

from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bsplib.transfers.registry import Registry

_CALLS = {
    "put": "put(pid, src, dst)",
    "hpput": "hpput(pid, src, dst)",
    "get": "get(pid, src, dst)",
    "hpget": "hpget(pid, src, dst)",
    "put_at": "put_at(pids, indices, values, dst)",
    "get_at": "get_at(pids, indices, src)",
    "send": "send(pid, payload)",
    "on": "on(pid, x)",
}


def no_process(operation: str, pid: Any) -> str:
    """Return what is wrong with a pid that is no integer."""
    text = f"an array of shape {pid.shape}" if isinstance(pid, np.ndarray) else short(pid)
    form = f"; write {_CALLS[operation]}" if operation in _CALLS else ""
    return f"{operation}: {text} is no process; a pid is an integer{form}"


def swapped(operation: str, registry: Registry, *others: Any) -> str:
    """Return a hint where another argument is registered than the one that has to be.

    Args:
        operation: name of the primitive.
        registry: registry of the group.
        *others: the arguments beside the one that is not registered.
    """
    if any(registry.find(other) is not None for other in others):
        return f", and another argument is: are they swapped? Write {_CALLS[operation]}"
    return ""
