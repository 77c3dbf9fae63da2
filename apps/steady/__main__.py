"""``python -m bsplib.apps.steady``."""

from bsplib.apps.steady.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m bsplib.apps.steady")
