"""SHA-256 without OpenSSL, which ``hashlib`` loads: 4 MB in each rank of a program."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def _found() -> Callable[[bytes], _Digest]:
    """Return the function of CPython 3.12 or later, of 3.11, or of another build."""
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        own: Callable[[bytes], _Digest] = module.sha256
        return own
    raise ImportError("this Python has no SHA-256")


sha256 = _found()
