"""Loops of the applications that are compiled with the core, or interpreted where it is.

Each module is written as one of the core: see ``bsplib/core``.
"""

import bsplib.core  # noqa: F401 - chooses the build of these modules, too
