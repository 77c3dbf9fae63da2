"""``python -m apps.msteps``."""

from apps.msteps.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m apps.msteps")
