"""What is held out, as it was fixed before the first fit."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

HELD_OUT: dict[str, Any] = tomllib.loads((HERE / "held_out.toml").read_text(encoding="utf-8"))
"""The contents of ``held_out.toml``."""
