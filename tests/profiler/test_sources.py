"""Source files beside the runs that were recorded from them."""

import os
import re
import shutil
from pathlib import Path

import pytest

from bsplib.profiler import sources
from bsplib.profiler.callgraph import build
from bsplib.profiler.sources import read_sources
from bsplib.recording.records import Frame
from bsplib.recording.sources import MAX_FILE_BYTES, digest

PROGRAM = """\
import bsplib


def relax(bsp):
    for _ in range(3):
        bsp.sync()


@cached
def main(bsp):
    relax(bsp)
    helper = lambda: bsp.sync()
    def inner():
        bsp.sync()
    inner()
    bsp.sync()
"""
CHANGED = "has changed since the run, so it is not shown."
UNKNOWN = "is not shown: the trace does not have its digest"
DOUBT = "The trace does not have the digest of this file: it may not be the one that ran."


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "solve.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.fixture
def read(script):
    """The excerpt around a line of a file; ``meta`` is that of the run.

    ``ran`` is the file whose digest the trace has, None for none.
    """

    def read(file, line, ran="", sources=None, **meta):
        maker = script(1)
        frame = Frame(str(file), "main", 1, line)
        maker.stacks = {(frame,): 0}
        maker._parse = lambda _: (frame,)
        maker.step("", 1)
        folder = meta.get("folder")
        here = Path(folder if isinstance(folder, str) else "", file)
        ran = None if ran is None else Path(ran or here)
        there = ran is not None and "\0" not in str(ran) and ran.is_file()
        small = there and ran.stat().st_size <= MAX_FILE_BYTES
        digests = {str(file): digest(ran.read_bytes() if small else b"")} if ran else {}
        callgraph = build(maker.run(meta=meta, sources=digests))
        excerpts, of = read_sources(callgraph, sources)
        _function, centre = callgraph.graph
        return excerpts[of[centre]]

    return read


def digests(path):
    return {str(path): digest(path.read_bytes())}


def test_the_lines_of_a_cost_centre_are_the_innermost_function_around_it(program, read):
    assert read(program, 6)[:3] == (str(program), 4, tuple(PROGRAM.split("\n")[3:6]))
    assert read(program, 14)[1:3] == (13, tuple(PROGRAM.split("\n")[12:14]))


def test_of_a_long_function_the_lines_around_the_node_are_shown(tmp_path, read):
    path = tmp_path / "long.py"
    path.write_text("def f():\n" + "    pass\n" * 5000)
    excerpt = read(path, 3000)
    assert excerpt.first == 3000 - sources.MAX_EXCERPT_LINES // 2
    assert len(excerpt.lines) == sources.MAX_EXCERPT_LINES + 1


def test_nodes_of_one_function_share_an_excerpt(program, script):
    maker = script(1)
    maker.first_lines |= {"main": 10, "relax": 4}
    for line in (11, 15, 16):
        maker.step(f"{program}/main:{line}", 1)
    maker.step(f"{program}/main:11 {program}/relax:6", 1)
    callgraph = build(maker.run(sources=digests(program)))
    excerpts, of = read_sources(callgraph)
    assert [excerpt.first for excerpt in excerpts] == [9, 4]
    assert set(of) == set(callgraph.graph)


def test_a_file_that_changed_since_the_run_is_not_shown_and_says_so(program, read, tmp_path):
    ran = shutil.copy(program, tmp_path / "before.py")
    assert read(program, 6, ran).note == ""
    program.write_text(PROGRAM.replace("3", "4"))
    assert read(program, 6, ran)[2:] == ((), f"{program} {CHANGED}")


def test_a_trace_learns_nothing_of_a_file_whose_digest_it_does_not_have(tmp_path, read):
    gone = tmp_path / "gone.py"
    assert read(gone, 6, None).note.startswith(f"{gone} {UNKNOWN}")


def test_a_folder_of_sources_has_the_files_of_another_computer(program, read, tmp_path):
    folder = tmp_path / "copies"
    (folder / "app").mkdir(parents=True)
    shutil.copy(program, folder / "app" / "solve.py")
    name = "/far/away/app/solve.py"
    assert read(name, 6, program).note == f"{name} is not on this computer."
    assert read(name, 6, program, folder)[1:] == (4, tuple(PROGRAM.split("\n")[3:6]), "")
    (folder / "solve.py").write_text("another\n")  # its name is less similar
    assert read(name, 6, None, folder)[1:] == (4, tuple(PROGRAM.split("\n")[3:6]), DOUBT)


@pytest.mark.parametrize("name", ["../solve.py", "/x/../solve.py", "link.py"])
def test_nothing_outside_a_folder_of_sources_is_shown(program, read, tmp_path, name):
    folder = tmp_path / "copies"
    folder.mkdir()
    (folder / "link.py").symlink_to(program)
    assert read(name, 6, None, folder).lines == ()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_regular_files_are_read(tmp_path, read, make):
    path = tmp_path / "x.py"
    make(path)
    kind = "a named pipe" if make is os.mkfifo else "a folder"
    assert read(path, 1).note == f"{path} cannot be read: it is {kind}."


def test_a_file_of_gigabytes_is_not_read(tmp_path, read):
    path = tmp_path / "x.py"
    with path.open("wb") as file:
        file.truncate(2**33)
    assert read(path, 1).note == f"{path} cannot be read: it is longer than 4 MiB."


@pytest.mark.parametrize("content", [b"x = '\xff'\n", b"# coding: klingon\n"])
def test_a_file_that_is_no_text_says_so(tmp_path, read, content):
    path = tmp_path / "x.py"
    path.write_bytes(content)
    assert read(path, 1).note == f"{path} cannot be read: it is not a text."


def test_the_lines_of_a_run_are_limited(program, script, monkeypatch):
    monkeypatch.setattr(sources, "MAX_LINES", 8)
    maker = script(1)
    maker.first_lines |= {"main": 10, "relax": 4}
    maker.step(f"{program}/main:11 {program}/relax:6", 1)
    excerpts, _ = read_sources(build(maker.run(sources=digests(program))))
    assert [len(excerpt.lines) for excerpt in excerpts] == [8, 0]
    assert excerpts[1].note == "The source is left out: only 8 lines of a run are shown."


def test_no_other_module_opens_the_files_that_a_trace_names():
    root = Path(sources.__file__).parents[2]
    reads = re.compile(
        r"\blinecache\b|tokenize\.open|detect_encoding|getsource|from bsplib\.recording\.sources"
    )
    found = {
        str(path.relative_to(root))
        for room in ("profiler", "webui", "bsplib/tools/cli", "bsplib/recording")
        for path in (root / room).rglob("*.py")
        if reads.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"profiler/sources.py", "bsplib/recording/recording.py"}
