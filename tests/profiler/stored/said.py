"""What the commands say of a stored trace: the report as JSON and on the terminal, and tables."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import run_bsp

FOLDER = Path(__file__).parent / "traces"
OUTPUTS = {
    "report": ("report",),
    "on a slower Machine": ("report", "--machine", "ideal:g=2e-9,l=1e-5", "--speed", "0.5x"),
    "supersteps": ("export", "--out", "-", "--format", "csv", "--table", "supersteps"),
    "predicted": ("predict", "--machine", "ideal:g=2e-9,l=1e-5,speed=1e9"),
}
"""Commands whose text is kept, by line."""


def run(*words: object) -> str:
    """Return what a command prints."""
    done = run_bsp(*words, env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    return done.stdout


def document_of(path: Path) -> dict:
    """Return the report of a trace as JSON."""
    return json.loads(run("report", "--json", path))


def said_of(path: Path) -> dict:
    """Return all that is kept of a trace."""
    texts = {name: run(*words, path).splitlines() for name, words in OUTPUTS.items()}
    return {"document": document_of(path), **texts}


def as_text(said: dict) -> str:
    """Return it as JSON with numbers of nine digits."""
    return _written(json.loads(json.dumps(said), parse_float=_Digits), "") + "\n"


class _Digits(float):
    def __str__(self) -> str:
        return f"{float(self):.9g}"


def _written(value: object, indent: str) -> str:
    """Return a value in one line where it fits into 100 characters."""
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_written(one, inner)}" for name, one in value.items()]
        around = "{}"
    elif isinstance(value, list):
        parts, around = [_written(one, inner) for one in value], "[]"
    else:
        return str(value) if isinstance(value, _Digits) else json.dumps(value, ensure_ascii=False)
    short = around[0] + ", ".join(parts) + around[1]
    if len(short) <= 100 and "\n" not in short:
        return short
    lines = f",\n{inner}".join(parts)
    return f"{around[0]}\n{inner}{lines}\n{indent}{around[1]}"
