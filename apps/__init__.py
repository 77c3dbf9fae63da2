"""Programs written against bsplib, to be read and to be used."""

import sys

from bsplib.own_packages import prefer_own

if sys.argv[:1] == ["-m"]:  # python -m apps.NAME is being looked up: no script of a user runs
    prefer_own("profiler")
