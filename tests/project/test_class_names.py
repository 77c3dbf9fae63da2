"""The name of a class means one thing in the whole tree."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP_LEVEL = re.compile(r"^class (\w+)", re.MULTILINE)
"""The head of a class; parsing all files would take seconds."""
ROOMS = ("apps", "benchmarks", "bsplib", "profiler", "webui")

_BENCHMARKED = "each program that is compared with peers has one: they are one interface"
_BACKENDS = "the same part of two backends, with the same task in each"
_LINE = "both ends of one line between the launcher and the ranks"
_INSIDE = "each is used in its own module or its neighbour only"
EXCEPTIONS = {
    "Problem": _BENCHMARKED,
    "Membership": _BACKENDS,
    "Oblivious": _BACKENDS,
    "Hooks": "what the core calls outside of it, on real and on virtual processors",
    "Gathering": _INSIDE,
    "Hub": _LINE,
    "_Guest": _LINE,
    "Post": "what a process publishes at a meeting: the backends have it in their own forms",
    "Box": _INSIDE,
    "Note": _INSIDE,
    "Place": _INSIDE,
    "Process": _INSIDE,
    "Watch": _INSIDE,
}
"""Names of classes that stand in several files, with the reason."""


def homes():
    """Return the files in which each class stands, by its name."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{room}/*.py" for room in ROOMS)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = defaultdict(list)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            for each in TOP_LEVEL.findall((ROOT / name).read_text("utf-8")):
                found[each].append(name)
    return found


def test_a_name_of_a_class_stands_in_one_file():
    several = {name: files for name, files in homes().items() if len(files) > 1}
    assert {name: files for name, files in several.items() if name not in EXCEPTIONS} == {}
