"""What the calls of other libraries are called here, for those who write them from habit."""

from __future__ import annotations

_HERE = {
    "rank": "pid",
    "get_rank": "pid",
    "size": "nprocs",
    "get_size": "nprocs",
    "bcast": "broadcast",
    "barrier": "sync",
    "recv": "messages or move",
    "isend": "send",
    "irecv": "messages or move",
    "reduce_all": "allreduce",
    "push_register": "push_reg",
    "pop_register": "pop_reg",
    "sub": "split or partition",
}
"""By the name in small letters, without a prefix such as ``bsp_``."""


def here(name: str) -> str | None:
    """Return the name here of what another library calls so; None if nothing is known."""
    plain = name.lower().removeprefix("bsp_")
    return _HERE.get(plain)
