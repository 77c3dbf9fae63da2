"""``python -m apps.sql``."""

from apps.sql.cli import cli

cli(prog_name="python -m apps.sql")
