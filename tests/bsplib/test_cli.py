"""The ``bsp`` command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bsplib
from bsplib import core
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp
from tests.processes import run_python

COMMAND = Path(sys.executable).with_name("bsp")

PROGRAM = """
import sys
import bsplib
from neighbour import greeting  # a module beside the script

def main(bsp):
    x = bsp.zeros(1, int)
    bsp.put((bsp.pid + 1) % bsp.nprocs, bsp.pid, x)
    bsp.sync()
    print(greeting, bsp.pid, int(x[0]))

if __name__ == "__main__":
    print("arguments", sys.argv[1:])
    bsplib.run(main, nprocs=2)
    bsplib.run(main, nprocs=2)
    print("done")
"""


SYNC = """
import bsplib

def main(bsp):
    bsp.sync()

if __name__ == "__main__":
    bsplib.run(main)
"""


@pytest.fixture
def bsp(tmp_path):
    """Run the command in an interpreter of its own."""

    def run(*args, cwd=tmp_path, **options):
        return subprocess.run(
            [COMMAND, *map(str, args)],
            **{"capture_output": True, **options},
            text=True,
            timeout=60,
            check=False,
            cwd=cwd,
        )

    return run


@pytest.fixture
def program(script):
    script('greeting = "hello from"', "neighbour.py")
    return script(PROGRAM, "program.py")


def one_sentence(result):
    """What an error says: the last line, with all others being usage."""
    *usage, error = result.output.strip().splitlines()
    assert all(line.startswith(("Usage:", "Try")) or not line for line in usage)
    assert error.startswith("Error: ")
    return error


# -- help --------------------------------------------------------------------------------------


def test_the_version_names_the_build_of_the_core():
    head, *reason = run_bsp("--version").output.splitlines()
    assert head == f"bsp {bsplib.__version__} (core: {core.BUILD})"
    assert reason == ([core.REASON] if core.REASON else [])


def test_the_module_is_the_command(program):
    done = run_python("-m", "bsplib", "run", "-n", "1", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[0] hello from 0 0" in done.stdout


@pytest.mark.slow
def test_the_module_starts_processes_that_are_not_forked(script):
    source = script("""
        import bsplib

        def main(bsp):
            return bsp.pid

        if __name__ == "__main__":
            print(bsplib.run(main, nprocs=2, start_method="spawn"))
    """)
    done = run_python("-m", "bsplib", "run", source)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 1]\n", "")


# -- bsp run ------------------------------------------------------------------------------------


def lines_of(done):
    return sorted(done.stdout.splitlines())


def test_run_labels_the_lines_of_processes_and_no_others(bsp, program):
    done = bsp("run", program)
    assert done.returncode == 0, done.stderr
    assert lines_of(done) == sorted(
        ["arguments []", *["[0] hello from 0 1", "[1] hello from 1 0"] * 2, "done"]
    )


def test_what_the_command_line_says_wins_over_the_script(bsp, program):
    done = bsp("run", "-n", 3, program)
    assert done.returncode == 0, done.stderr
    printed = [f"[{pid}] hello from {pid} {(pid - 1) % 3}" for pid in range(3)]
    assert lines_of(done) == sorted(["arguments []", *printed, *printed, "done"])


def test_each_option_reaches_the_runs_of_the_script(bsp, script, tmp_path):
    source = script("""
        import sys
        from pathlib import Path
        import numpy as np
        import bsplib

        def main(bsp):
            return bsp.nprocs, bsp.machine.name, type(bsp.zeros(1)) is np.ndarray

        if __name__ == "__main__":
            print(sys.argv[1:], Path(sys.path[0]) == Path(__file__).parent, bsplib.run(main)[1])
    """)
    options = ["-n", 2, "--machine", "ideal", "--check", "--no-lines", "--profile", "a.bsp"]
    done = bsp("run", *options, "--timeout", 50, "--repeat", 2, source, "a", "--b")
    assert (done.returncode, done.stdout) == (0, "['a', '--b'] True (2, 'ideal', False)\n" * 2)
    first, second = read_trace(tmp_path / "a.bsp").runs
    assert [run.meta["repeat"] for run in (first, second)] == [[0, 2], [1, 2]]
    assert "switched off" in first.measured["lines"]


def test_arguments_behind_the_script_are_the_script_s(bsp, program):
    done = bsp("run", "-n", 1, program, "--size", "5", "-n", "7", "--profile", "x", "--", "y")
    assert done.returncode == 0, done.stderr
    assert "arguments ['--size', '5', '-n', '7', '--profile', 'x', '--', 'y']" in done.stdout
    assert "hello from 0 0" in done.stdout


def test_run_records_all_runs_of_the_script_in_one_trace(bsp, program, tmp_path):
    done = bsp("run", "--profile", "out.bsp", program, "argument")
    assert done.returncode == 0, done.stderr
    assert "recorded in out.bsp" in done.stderr
    runs = read_trace(tmp_path / "out.bsp").runs
    assert [run.nprocs for run in runs] == [2, 2]
    assert runs[0].meta["program"] == "program.py"
    assert runs[0].meta["arguments"] == ["argument"]
    report = bsp("report", "out.bsp")
    assert report.returncode == 0, report.stderr
    assert report.stdout.count("program.py") >= 2
    assert "program.py line 9" in " ".join(report.stdout.split())


@pytest.mark.slow
def test_a_command_that_is_suggested_can_be_copied_into_a_shell(bsp, script):
    done = bsp("run", "-n", 1, "--profile", "my run.bsp", script(SYNC))
    assert "bsp report 'my run.bsp', bsp view 'my run.bsp'" in done.stderr
    assert "bsp view 'my run.bsp'" in " ".join(bsp("run", "my run.bsp").stderr.split())


@pytest.mark.slow
def test_a_report_needs_no_characters_beyond_those_of_the_output(bsp, script):
    bsp("run", "-n", 1, "--profile", "run.bsp", script(SYNC))
    done = bsp("report", "run.bsp", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "\n???" in done.stdout  # the line below the names of the columns


@pytest.mark.lengthy
def test_a_full_device_is_one_sentence(bsp):
    with Path("/dev/full").open("w") as full:
        done = bsp("machine", "list", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 1
    assert done.stderr == "Error: standard output cannot be written: no space left\n"


def test_a_dash_is_no_file_where_nothing_goes_to_standard_output(bsp, script, tmp_path):
    done = bsp("run", "-n", 1, "--profile", "-", script(SYNC))
    assert done.returncode == 2
    assert "- stands for standard output elsewhere; name a file here" in done.stderr
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("on", ["shm", "sim"])
def test_a_line_without_an_end_is_labelled_and_not_lost(bsp, script, on):
    source = script("""
        import sys
        import bsplib

        def main(bsp):
            print("half", end="")
            print("", "whole")
            print("to errors", file=sys.stderr)
            sys.stdout.write("two\\nlines\\nrest")

        bsplib.run(main, nprocs=2)
    """)
    done = bsp("run", "--backend", on, source)
    assert done.returncode == 0, done.stderr
    expected = [
        f"[{pid}] {line}" for pid in (0, 1) for line in ("half whole", "two", "lines", "rest")
    ]
    assert lines_of(done) == sorted(expected)
    assert {"[0] to errors", "[1] to errors"} <= set(done.stderr.splitlines())


def test_an_error_of_the_program_shows_its_traceback(bsp, script):
    source = script("""
        import bsplib

        def main(bsp):
            bsp.put(bsp.nprocs, 1, bsp.zeros(1))

        bsplib.run(main, nprocs=2)
    """)
    done = bsp("run", source)
    assert done.returncode == 1
    assert "in main" in done.stderr
    *_, error, note = done.stderr.rstrip().splitlines()
    assert error.startswith("bsplib.errors.ProcessRangeError: put: there is no process 2 among 2")
    assert note == "[1 more process failed]"


def test_the_exit_status_of_the_script_is_that_of_the_command(bsp, script):
    assert bsp("run", script("import sys; sys.exit(7)")).returncode == 7


def test_a_script_that_is_not_there_is_an_error():
    result = run_bsp("run", "missing.py")
    assert result.exit_code == 2
    assert "'missing.py' does not exist" in one_sentence(result)


def test_a_folder_is_no_script(tmp_path):
    result = run_bsp("run", tmp_path)
    assert result.exit_code == 2
    assert "is a directory" in one_sentence(result)


# -- bsp report -----------------------------------------------------------------------------------


def worker(bsp):
    bsp.send((bsp.pid + 1) % bsp.nprocs, b"12345678")
    bsp.sync()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "two runs.bsp"
    for _ in range(2):
        bsplib.run(worker, nprocs=3, backend="sim", profile=path)
    return path


@pytest.mark.parametrize("number", [1, 2])
def test_report_prints_one_run_counted_from_1(trace, number):
    result = run_bsp("report", "--run", number, trace)
    assert result.exit_code == 0
    assert result.output.count("3 processes, backend") == 1
    assert f"run {number}" in result.output


@pytest.mark.parametrize("number", [0, 3, -1])
def test_report_refuses_a_run_that_is_not_there(trace, number):
    result = run_bsp("report", "--run", number, trace)
    assert result.exit_code == 2
    assert f"there is no run {number}; the trace has runs 1 to 2" in one_sentence(result)


def test_a_file_that_is_no_trace_is_one_sentence(program):
    result = run_bsp("report", program)
    assert result.exit_code == 1
    assert "program.py: is no trace" in one_sentence(result)


# -- bsp view -------------------------------------------------------------------------------------


def test_view_writes_one_trace_to_a_page(trace, tmp_path):
    result = run_bsp("view", "--html", tmp_path / "page.html", trace, trace)
    assert "--html and a folder take one FILE" in one_sentence(result)
    assert not (tmp_path / "page.html").exists()


# -- modules, environment variables, completion --------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "package",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("program", "package.program")),
    ],
)
def test_run_takes_the_name_of_a_module(bsp, program, tmp_path, name):
    (tmp_path / "package").mkdir()
    for file in ("__init__.py", "__main__.py", "program.py"):
        (tmp_path / "package" / file).write_text("" if "init" in file else PROGRAM)
    done = bsp("run", "-n", "3", "--profile", "run.bsp", "-m", name, "-x", "y")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "arguments ['-x', 'y']"
    assert sum("hello from" in line for line in done.stdout.splitlines()) == 6
    first, _ = read_trace(tmp_path / "run.bsp").runs
    assert first.meta["program"] == ("package" if name == "package" else "program.py")


def test_an_error_of_a_module_shows_the_traceback_from_its_file_on(bsp, script):
    script("import bsplib\ndef main(bsp):\n    1 / 0\nbsplib.run(main, nprocs=1)\n", "wrong.py")
    done = bsp("run", "-m", "wrong")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "runpy" not in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "'nothing' is no module that can be run: there is none of this name"),
        ("json", "'json' is no module that can be run: it is a package without a __main__.py"),
        pytest.param(
            "program.py", "'program.py' is no module that can be run", marks=pytest.mark.slow
        ),
    ],
)
def test_what_is_no_module_is_one_sentence(bsp, program, name, words):
    done = bsp("run", "-m", name)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert words in done.stderr


@pytest.mark.slow
def test_environment_variables_stand_for_options_that_are_not_given(bsp, program, monkeypatch):
    monkeypatch.setenv("BSP_NPROCS", "3")
    monkeypatch.setenv("BSP_BACKEND", "sim")
    given = bsp("run", "-n", "1", program).stdout
    assert given.count("hello from") == 2
    assert bsp("run", program).stdout.count("hello from") == 6
    monkeypatch.setenv("BSP_NPROCS", "many")
    assert "BSP_NPROCS" in bsp("run", "--help").stdout
    done = bsp("run", program)
    assert done.returncode == 2
    assert "'many' is not a valid whole number" in done.stderr


@pytest.mark.lengthy
def test_a_script_that_runs_nothing_is_said_where_it_was_to_be_recorded(bsp, tmp_path):
    (tmp_path / "plain.py").write_text("print('done')\n")
    done = bsp("run", "--profile", "out.bsp", "plain.py")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr == (
        "out.bsp was not written: plain.py has called neither bsplib.run nor Pool.run\n"
    )
    assert not (tmp_path / "out.bsp").exists()


RING = """
import bsplib, sys
def main(bsp):
    bsp.sync()
if __name__ == "__main__":
    print(len(bsplib.run(main, nprocs=3, backend="sim")))
"""


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "words",
    [
        ["100", "--nprocs=2"],
        *(
            pytest.param(words, marks=pytest.mark.slow)
            for words in (["-n", "2"], ["--profile", "x.bsp"])
        ),
    ],
)
def test_options_after_a_script_that_reads_none_get_a_sentence(bsp, tmp_path, words):
    (tmp_path / "ring.py").write_text(RING)
    done = bsp("run", "ring.py", *words)
    assert done.stdout == "3\n"
    option = next(word for word in words if word.startswith("-"))
    assert (
        f"{option} stands after ring.py, so ring.py gets it and bsp run does not; write it before: "
        f"bsp run {option} ... ring.py\n"
    ) in done.stderr


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("import argparse", ["-n", "2"]),
        ("steps = sys.argv[sys.argv.index('-n') + 1]", ["-n", "2"]),
        pytest.param("", ["--size", "2"], marks=pytest.mark.slow),
        ("", ["--", "-n", "2"]),
        pytest.param("", ["2"], marks=pytest.mark.slow),
    ],
)
def test_options_that_are_meant_for_the_script_get_none(bsp, tmp_path, more, words):
    (tmp_path / "ring.py").write_text(RING + more)
    done = bsp("run", "ring.py", *words)
    assert done.stdout == "3\n"
    assert "stands after" not in done.stderr
