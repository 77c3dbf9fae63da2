"""``python -m bsplib.apps.paradigms``."""

from bsplib.apps.paradigms.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m bsplib.apps.paradigms")
