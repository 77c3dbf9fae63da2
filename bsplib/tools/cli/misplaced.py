"""Options that stand after the script, though they were probably meant for ``bsp run``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

_PARSERS = ("argparse", "optparse", "getopt", "click", "docopt", "typer", "fire", "absl", "tyro")
"""Modules by which a script reads its options, and refuses those that it has not."""


def misplaced(command: click.Command, file: str, arguments: Sequence[str]) -> str:
    """Return a sentence about an option that the script gets and does not read; empty if none.

    A script that runs bsplib itself, imports no parser of options and does not contain the
    option as a text makes nothing of it.

    Args:
        command: the command, with the options that it takes before the script.
        file: file of the script.
        arguments: what follows the script.
    """
    options = {each for option in command.params for each in option.opts if each.startswith("-")}
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    words = [word.partition("=")[0] for word in own]
    found = next((at for at, word in enumerate(words) if word in options), None)
    if found is None:
        return ""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):  # whoever runs it says why
        return ""
    runs = "run(" in text or "Pool(" in text
    reads = any(f"{quote}{words[found]}" in text for quote in "\"'")
    if not runs or reads or any(parser in text for parser in _PARSERS):
        return ""
    name = Path(file).name
    return (
        f"{own[found]} stands after {name}, so {name} gets it and bsp run does not; write it "
        f"before: bsp run {own[found]} ... {name}"
    )
