"""``python -m apps.speedup``."""

from apps.speedup.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m apps.speedup")
