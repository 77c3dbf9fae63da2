"""SHA-256 without OpenSSL, which ``hashlib`` loads: 4 MB in each rank of a program."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def _found() -> Callable[[bytes], Any]:
    """Return the function of CPython 3.12 or later, of 3.11, or of another build."""
    for name in ("_sha2", "_sha256"):
        try:
            own: Callable[[bytes], Any] = importlib.import_module(name).sha256
        except ImportError:
            continue
        return own
    return importlib.import_module("hashlib").sha256  # type: ignore[no-any-return]


sha256 = _found()
