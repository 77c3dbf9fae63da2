"""``python -m bsplib.apps.steady``."""

from bsplib.apps.papers.steady.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m bsplib.apps.steady")
