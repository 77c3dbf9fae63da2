"""``python -m bsplib.record`` is ``bsp record``."""

import sys

from bsplib.record.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
