"""``python -m apps.steady``."""

from apps.steady.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m apps.steady")
