"""The folder with the sockets of hosts and the scripts that use them."""

from __future__ import annotations

import random
import string
import sys
import tempfile
from pathlib import Path

_SCRIPT = '#!/bin/sh\nexec {python} -I -S {agent} {way} {folder} "$@"\n'


def create() -> tuple[str, Path]:
    """Create a folder; return the word that only these hosts have in their names, and its path.

    The word has letters only: launchers of MPI take the names of hosts apart at digits.
    """
    word = "".join(random.SystemRandom().choices(string.ascii_lowercase, k=6))
    folder = Path(tempfile.gettempdir()) / f"bsp-hosts-{word}"
    folder.mkdir(mode=0o700)
    for way in ("on", "ssh"):
        script = folder / way
        agent = Path(__file__).with_name("agent.py")
        script.write_text(
            _SCRIPT.format(python=sys.executable, agent=agent, way=way, folder=folder)
        )
        script.chmod(0o700)
    return word, folder
