"""Commands that tests run to their end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def run_command(
    *words: object, timeout: float = 100, check: bool = False, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command; return its status and what it has written on each stream."""
    options = {"capture_output": True, "text": True, "timeout": timeout}
    return subprocess.run([*map(str, words)], check=check, **options | more)


def run_python(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the interpreter of the tests as :func:`run_command` does."""
    return run_command(sys.executable, *words, **more)
