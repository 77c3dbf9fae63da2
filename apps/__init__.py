"""Programs that use bsplib, as examples and for use."""

import sys

from bsplib.own_packages import prefer_own

if sys.argv[:1] == ["-m"]:  # python -m apps.NAME is being looked up: no script of a user runs
    prefer_own("profiler")
