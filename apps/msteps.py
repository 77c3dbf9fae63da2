"""``python -m bsplib.apps.msteps``."""

from bsplib.apps.papers.msteps.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m bsplib.apps.msteps")
