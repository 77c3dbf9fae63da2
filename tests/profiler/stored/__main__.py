"""Write the stored traces and what the commands say of them: ``python -m tests.profiler.stored``.

What changes in a ``.json`` file is what a user sees changed: read the difference before it is kept.
With ``--traces`` the traces are written, too; that is needed only where the format changes.
"""

from __future__ import annotations

import sys

from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace

from .programs import STORED
from .said import FOLDER, as_text, said_of

for name, (make, _) in STORED.items():
    path = FOLDER / f"{name}.bsp"
    if "--traces" in sys.argv or not path.exists():
        write_trace(path, Trace(make()))
    (FOLDER / f"{name}.json").write_text(as_text(said_of(path)), encoding="utf-8")
