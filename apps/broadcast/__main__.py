"""``python -m apps.broadcast``."""

from apps.broadcast.broadcast import command

command(prog_name="python -m apps.broadcast")
