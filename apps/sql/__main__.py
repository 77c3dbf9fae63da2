"""``python -m bsplib.apps.sql``."""

from bsplib.apps.sql.cli import cli

cli(prog_name="python -m bsplib.apps.sql")
