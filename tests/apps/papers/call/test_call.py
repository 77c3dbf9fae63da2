"""``bsp papers call``: programs with comments are run, and their data files fitted."""

from __future__ import annotations

import errno
import json
import mmap

import numpy as np
import pytest

import bsplib
from bsplib.apps.papers.call import counters, datafile, matrix, session
from bsplib.experiments.blocks import ExperimentBlock
from bsplib.profiler.predict import TimingsError, read_timings
from bsplib.profiler.predict.experiments import passages
from bsplib.profiler.predict.files import read_lines
from bsplib.recording.trace import read_trace
from tests.commands import run_bsp

PROGRAM = """
import sys
import bsplib

def main(bsp, N, seed=0):
    bsp.charge(0)
    #cll f f[0]*P + f[1]*N/P
    bsp.charge(1e-6 * N / bsp.nprocs + 1e-4 * bsp.nprocs)
    #cll end f
    if N == 666:
        raise ValueError("the number of the beast")
    print("printed by the program")

if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    bsplib.run(main, size, nprocs=2, backend="sim")
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run ``bsp papers call`` in a folder of its own, here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # the command replaces the first entry

    def ask(*arguments):
        return run_bsp("papers", "call", *arguments)

    return ask


def times_in(path):
    return [each for each in read_lines(path) if each.metric == "time"]


@pytest.mark.lengthy
def test_a_program_is_measured_for_all_combinations_and_its_formula_fitted(call, program, tmp_path):
    done = call("--nprocs", "1:4:x2", "--set", "N=1024:16384:x2", program)
    assert done.exit_code == 0, done.output
    assert done.output == (
        "experiments f added to program.call.jsonl: bsp papers call program.call.jsonl\n"
    )
    found = times_in(tmp_path / "program.call.jsonl")
    assert {(each.values["N"], each.values["P"]) for each in found} == {
        (n, p) for n in (1024, 2048, 4096, 8192, 16384) for p in (1, 2, 4)
    }
    fitted = call("--at", "N=2^20,P=8", "program.call.jsonl")
    assert "experiment f\nat N = 2^20, P = 8: time = 0.1319, " in fitted.output
    assert "\ntime = f[0]*P + f[1]*N/P" in fitted.output


def test_a_value_may_be_an_argument_of_the_script(call, program, tmp_path):
    assert call("--set", "n=7", program, "{n}").exit_code == 0
    (found,) = times_in(tmp_path / "program.call.jsonl")
    assert found.values == {"N": 7, "P": 2}


def test_an_error_of_the_script_ends_the_command_and_keeps_what_was_measured(
    call, program, tmp_path
):
    done = call("--set", "N=8,666,9", program)
    assert done.exit_code == 1
    assert "the number of the beast" in done.output
    found = times_in(tmp_path / "program.call.jsonl")
    assert [each.values["N"] for each in found] == [8]


SENTENCES = {
    "an unknown name": (["--set", "M=1"], "program.py runs has a parameter M, and no argument of"),
    "half a process": (["--nprocs", "1.5"], "--nprocs '1.5' has to have positive integers only"),
    "too many processes": (
        ["--backend", "shm", "--nprocs", "999"],
        "nprocs is 999; it may be 1 to 256 on shm",
    ),
    "no such Machine": (["--machine", "abacus"], "abacus"),
    "an unknown counter": (["--counters", "pages"], "--counters: there is no 'pages'; choose from"),
    "counters of virtual processors": (
        ["--counters", "cycles", "--backend", "sim"],
        "--counters: virtual processors share the counters of one thread",
    ),
    "another file": (["--out", "program.py"], "program.py exists and is not a data file of CALL"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_a_wrong_option_is_refused_in_one_sentence(call, program, case):
    options, sentence = SENTENCES[case]
    done = call(*options, program)
    assert done.exit_code != 0
    assert sentence in done.output
    assert "Traceback" not in done.output


def test_a_wrong_comment_is_one_sentence(call, program):
    program.write_text(PROGRAM.replace("#cll end f", "#cll end g"))
    done = call(program)
    assert done.exit_code != 0
    assert "program.py:9: #cll end g stands inside of f, which began in line 7" in done.output
    assert "Traceback" not in done.output


def test_a_program_without_comments_is_told(call, program):
    program.write_text(PROGRAM.replace("#cll", "#"))
    assert "program.py measured nothing: mark a block by #cll comments" in call(program).output


def test_the_matrix_of_the_paper_has_a_block_with_three_constants():
    (found,) = session.run(matrix.__file__, ["16"], nprocs=2)
    assert found.formula == "A[0] + A[1]*N + A[2]*N**2"
    assert found.values == {"N": 16, "P": 2}
    assert min(found.amounts["time"]) > 0


# -- counters -----------------------------------------------------------------------------------


def test_a_counter_that_is_not_there_is_told_and_left_out(call, program, tmp_path, monkeypatch):
    def refuse(name):
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(counters, "_open", refuse)
    done = call("--counters", "cycles", program)
    assert done.exit_code == 0, done.output
    assert "--counters: cycles is not counted: the system does not allow it (sysctl" in done.output
    metrics = [each.metric for each in read_lines(tmp_path / "program.call.jsonl")]
    assert metrics == ["time", "h"]


def test_counters_count_on_each_process_where_the_system_has_them(tmp_path):
    if reason := counters.reason_against("page-faults"):
        pytest.skip(f"page-faults are not counted here: {reason}")

    def touches(bsp):
        block = bsp.experiment("f", "f[0]")
        assert isinstance(block, ExperimentBlock)
        with counters.counting(block):
            new = mmap.mmap(-1, 2**22)  # np.ones may be given memory that was touched before
            np.frombuffer(new, np.uint8)[:] = 1

    counters.choose(["page-faults", "instructions"])
    try:
        bsplib.run(touches, nprocs=2, profile=tmp_path / "trace.bsp")
    finally:
        counters.choose([])
    (found,) = passages(read_trace(tmp_path / "trace.bsp").runs[0])
    assert len(found.amounts["page-faults"]) == 2
    assert all(faults > 0 for faults in found.amounts["page-faults"])


# -- the data file ------------------------------------------------------------------------------


@pytest.fixture
def path(program, tmp_path):
    path = tmp_path / "data.jsonl"
    for size in (1, 2, 3):
        datafile.append(path, session.run(str(program), [str(size)]))
    return path


def test_a_line_that_was_cut_short_is_named(path):
    path.write_text(path.read_text()[:-9])
    with pytest.raises(TimingsError, match=r"data.jsonl, line 6 is no measurement such as "):
        session.print_fits([path], [], "time", None)


def test_files_are_joined(path, tmp_path, capsys):
    other = tmp_path / "other.jsonl"
    other.write_text(path.read_text() * 2)
    session.print_fits([path, other], [], "time", None)
    assert "of 3 points (the least of up to 3 times" in capsys.readouterr().out


def test_the_formula_of_a_block_is_that_of_a_table_too(path):
    timings = read_timings(path)
    assert timings.formula == "f[0]*P + f[1]*N/P"
    assert timings.values["N"].tolist() == [1, 2, 3]


def test_a_block_that_was_changed_needs_a_choice_between_its_formulas(path, capsys):
    path.write_text(path.read_text() + path.read_text().replace("f[0]*P", "f[0]"))
    with pytest.raises(TimingsError, match=r"f has 2 formulas, f\[0\]\*P \+ f\[1\]\*N/P and f"):
        session.print_fits([path], [], "time", None)
    session.print_fits([path], [], "time", "f[0]*P")
    assert "time = f[0]*P" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes",
    [
        {"value": [10**400]},
        {"value": float("inf")},
        {"params": {"N": 10**400}},
        {"value": ["8", None]},
        {"params": [1]},
    ],
)
def test_a_passage_with_values_that_cannot_be_is_refused(path, changes):
    first, *_ = path.read_text().splitlines()
    path.write_text(json.dumps(json.loads(first) | changes) + "\n")
    with pytest.raises(TimingsError, match=r"line 1 is no measurement such as "):
        read_lines(path)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(TimingsError, match=r"nowhere.jsonl cannot be read: No such file"):
        read_lines(tmp_path / "nowhere.jsonl")
