"""``python -m bsplib.apps.broadcast``."""

from bsplib.apps.broadcast.broadcast import command

command(prog_name="python -m bsplib.apps.broadcast")
