"""What holds for the tests of all rooms."""

from __future__ import annotations

import signal

# A shell starts its background jobs with SIGINT ignored, and programs inherit that.
# Some tests are about Ctrl-C, hence here it means what it does at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
