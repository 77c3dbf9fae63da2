"""``python -m bsplib`` is the ``bsp`` command."""

from bsplib.tools.cli import main

if __name__ == "__main__":  # processes that are not forked import this module too
    main(prog_name="bsp")
