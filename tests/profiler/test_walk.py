"""How many files a reader enters who follows a record to the shade of a node."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

import bsplib
from bsplib.machine import load_machine

ROOT = Path(bsplib.__file__).resolve().parents[1]
ROOMS = ("bsplib", "profiler")


def files_of(call):
    """Which source files of the product a call enters."""
    seen = set()

    def note(frame, event, arg):
        seen.add(frame.f_code.co_filename)

    threading.settrace(note)  # windows are made in a thread
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(None)
        threading.settrace(None)
    paths = (Path(file).resolve() for file in seen if file.endswith(".py"))
    inside = (path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT))
    return sorted(str(path) for path in inside if path.parts[0] in ROOMS)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    def main(bsp):
        for _ in range(5):
            bsp.charge(1e-3 * (1 + bsp.pid))
            bsp.send(0, bytes(100))
            bsp.sync()

    path = tmp_path_factory.mktemp("walk") / "t.bsp"
    bsplib.run(main, nprocs=4, backend="sim", profile=path)
    return path


def test_the_way_of_a_record_to_a_shaded_node_is_short(recorded):
    (run,) = bsplib.load(recorded).runs
    assert len(run.run.records)  # a reader starts there
    files = files_of(lambda: run.book().shades())
    assert len(files) <= 22, files


def test_the_way_to_the_account_on_another_machine_is_short(recorded):
    (run,) = bsplib.load(recorded).runs
    run.book()
    assert len(run.run.records)  # a reader starts there
    there = run.on(load_machine("ibm-sp2-pvm"), speed="1x")
    files = files_of(lambda: there.book().shades())
    assert len(files) <= 19, files
