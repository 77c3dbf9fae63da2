"""The folder with the sockets of hosts and the scripts that use them; its keeper holds a lock."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import string
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "bsp-hosts-"
_LOCK = "lock"
_SCRIPT = '#!/bin/sh\nexec {python} -I -S {agent} {way} {folder} "$@"\n'


def create() -> tuple[str, Path]:
    """Create a folder; return the word that only these hosts have in their names, and its path.

    The word has letters only: launchers of MPI take the names of hosts apart at digits.
    """
    word = "".join(random.SystemRandom().choices(string.ascii_lowercase, k=6))
    folder = Path(tempfile.gettempdir()) / (_PREFIX + word)
    folder.mkdir(mode=0o700)
    for way in ("on", "ssh"):
        script = folder / way
        agent = Path(__file__).with_name("agent.py")
        script.write_text(
            _SCRIPT.format(python=sys.executable, agent=agent, way=way, folder=folder)
        )
        script.chmod(0o700)
    return word, folder


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, and remove the folder in the end."""
    unlocked = folder / "unlocked"
    lock = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(folder / _LOCK)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned() -> list[Path]:
    """Remove the folders whose keeper was killed; return them."""
    removed = []
    for lock_file in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            lock = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock_file.parent, ignore_errors=True)
                removed.append(lock_file.parent)
            finally:
                os.close(lock)
    return removed
