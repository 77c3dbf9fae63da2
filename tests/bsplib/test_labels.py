"""Lines that processes print arrive whole, whoever else prints at the same time."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter

import pytest

from bsplib.running.terminal import WholeLines, whole_lines

PROGRAM = """
import sys
import bsplib

LENGTHS = 50, 5000, 70_000

def main(bsp):
    letter = "abcd"[bsp.pid]
    for number in range(60):
        for length in LENGTHS:
            print(letter * (length // 2), end="")
            sys.stdout.write(letter * (length - length // 2))
            print()

if __name__ == "__main__":
    bsplib.run(main, nprocs=4, backend=sys.argv[1], start_method=sys.argv[2] or None)
"""


@pytest.mark.parametrize(("on", "method"), [("shm", "fork"), ("shm", "forkserver"), ("sim", "")])
def test_lines_printed_in_pieces_arrive_whole_in_a_pipe(execute, on, method):
    done = execute(PROGRAM, on, method)
    assert done.returncode == 0, done.stderr
    lines = Counter(done.stdout.splitlines())
    expected = {letter * length: 60 for letter in "abcd" for length in (50, 5000, 70_000)}
    assert {line[:1] + str(len(line)) for line in lines} == {
        line[:1] + str(len(line)) for line in expected
    }
    assert lines == expected


def test_lines_of_processes_arrive_whole_in_a_file(script, tmp_path):
    out = tmp_path / "out.txt"
    with out.open("w") as file:
        line = [sys.executable, script(PROGRAM), "shm", "fork"]
        subprocess.run(line, stdout=file, timeout=60, check=True)
    assert all(len(set(line)) == 1 for line in out.read_text().splitlines())
    assert len(out.read_text().splitlines()) == 4 * 60 * 3


def test_flush_writes_a_line_that_has_no_end_yet_unless_it_is_labelled():
    for label, expected in ((False, "10%"), (True, "")):
        stream = io.StringIO()
        lines = WholeLines(stream, lambda: 3, label=label)
        lines.write("10%")
        assert stream.getvalue() == ""
        lines.flush()
        assert stream.getvalue() == expected


def test_what_is_printed_by_no_process_has_no_label():
    stream = io.StringIO()
    who = iter([None, 1, 1, None])
    lines = WholeLines(stream, lambda: next(who), label=True)
    for text in ("starting\n", "half ", "whole\ntwo\n", "done\n"):
        lines.write(text)
    assert stream.getvalue() == "starting\n[1] half whole\n[1] two\ndone\n"


def test_a_stream_may_be_closed_by_one_thread_while_another_one_writes_to_it(tmp_path):
    """Runs of several threads overlap, and each puts its own stream in place of the one before."""
    with (tmp_path / "out.txt").open("w+") as file:

        class Closing(io.TextIOBase):
            fileno = file.fileno

            def write(self, text):
                lines.close()
                return file.write(text)

        lines = WholeLines(Closing(), lambda: None, label=False)
        lines.write("first\n")
        lines.write("second\n")
        file.seek(0)
        assert file.read() == "first\nsecond\n"


def test_the_stream_is_what_it_was_for_those_who_ask(monkeypatch, tmp_path):
    with (tmp_path / "out.txt").open("w", encoding="latin-1") as file:
        monkeypatch.setattr(sys, "stdout", file)
        with whole_lines(lambda: 0, label=False):
            assert sys.stdout.encoding == "latin-1"
            assert sys.stdout.fileno() == file.fileno()
            assert not sys.stdout.isatty()
            sys.stdout.buffer.write(b"bytes ")
            print("and text")
        assert sys.stdout is file
    assert (tmp_path / "out.txt").read_text() == "bytes and text\n"


def test_the_streams_are_put_back_where_nobody_reads_the_rest(monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    gone = Gone()
    monkeypatch.setattr(sys, "stdout", gone)

    def print_half():
        with whole_lines(lambda: 0, label=False):
            print("half", end="")

    with pytest.raises(BrokenPipeError):
        print_half()
    assert sys.stdout is gone


def test_no_descriptor_stays_open(capfd):  # with files as standard streams
    before = len(os.listdir("/proc/self/fd"))
    with whole_lines(lambda: 0, label=False):
        print("line")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_program_without_standard_streams_runs(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with whole_lines(lambda: 0, label=False):
        print("nowhere")
    assert sys.stdout is None
