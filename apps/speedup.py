"""``python -m bsplib.apps.speedup``."""

from bsplib.apps.papers.speedup.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m bsplib.apps.speedup")
