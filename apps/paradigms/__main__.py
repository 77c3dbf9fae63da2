"""``python -m apps.paradigms``."""

from apps.paradigms.cli import cli

if __name__ == "__main__":
    cli(prog_name="python -m apps.paradigms")
