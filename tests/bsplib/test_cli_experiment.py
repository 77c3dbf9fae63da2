"""``bsp experiment run``, ``merge`` and ``show``, and what ``bsp run`` measures."""

from __future__ import annotations

import errno

import pytest
from click.testing import CliRunner

from bsplib.errors import UsageError
from bsplib.experiments import counters, datafile
from bsplib.experiments.grid import combinations, read_setting, read_values
from bsplib.tools.cli import main as bsp_main

PROGRAM = """
import sys
import bsplib

def main(bsp, N, seed=0, *, rate=1e-6):
    with bsp.experiment("f", "f[0]*P + f[1]*N/P", N=N, seed=seed):
        bsp.charge(rate * N / bsp.nprocs + 1e-4 * bsp.nprocs)
    if N == 666:
        raise ValueError("the number of the beast")
    print("printed by the program")

if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    bsplib.run(main, size, nprocs=2, backend="sim")
"""


@pytest.fixture
def program(script):
    return script(PROGRAM, "sweep.py")


@pytest.fixture
def bsp(tmp_path, monkeypatch):
    """Run ``bsp`` in a folder of its own, here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # the command replaces the first entry

    def ask(*arguments):
        return CliRunner().invoke(bsp_main, [*map(str, arguments)])

    return ask


def rows(tmp_path, name="sweep.experiments.jsonl"):
    return datafile.read(tmp_path / name)


def test_all_combinations_are_run_and_kept_in_one_file_and_shown(bsp, program, tmp_path):
    done = bsp(
        "experiment", "run", "--nprocs", "1:4:x2", "--set", "N=8,16", "--repeats", 2, program
    )
    assert done.exit_code == 0, done.output
    found = rows(tmp_path)
    assert len(found) == 3 * 2 * 2
    points = {
        (row["params"]["N"], row["params"]["P"], row["run"]["turn"]["repeat"]) for row in found
    }
    assert len(points) == len(found)
    assert "f: f[0]*P + f[1]*N/P" in done.output
    assert "printed by the program" not in done.output
    assert "bsp fit sweep.experiments.jsonl" in done.output


def test_what_is_in_the_file_already_is_not_run_again(bsp, program, tmp_path):
    command = ["experiment", "run", "--set", "N=8,16", "--repeats", 1, program]
    assert bsp(*command).exit_code == 0
    before = rows(tmp_path)
    path = tmp_path / "sweep.experiments.jsonl"
    path.write_text(path.read_text()[:-20])  # the second execution is cut short
    again = bsp(*command)
    assert "1 of 2 executions were in sweep.experiments.jsonl already" in again.output
    after = rows(tmp_path)
    assert after[0] == before[0]
    assert [row["params"] for row in after] == [row["params"] for row in before]


TWO_RUNS = """
import bsplib

def prepare(bsp):
    bsp.sync()

def main(bsp, N):
    with bsp.experiment("f", "f[0]*N", N=N):
        bsp.charge(1e-3 * N)

if __name__ == "__main__":
    bsplib.run(prepare, nprocs=1, backend="sim")
    bsplib.run(main, 3, nprocs=1, backend="sim")
"""


def test_a_script_whose_first_run_measures_nothing_is_not_run_again_either(bsp, script, tmp_path):
    command = ["experiment", "run", "--set", "N=1,2", "--repeats", 1, script(TWO_RUNS, "two.py")]
    assert bsp(*command).exit_code == 0
    assert "2 of 2 executions were in two.experiments.jsonl already" in bsp(*command).output
    assert len(rows(tmp_path, "two.experiments.jsonl")) == 2


def test_a_value_may_be_an_argument_of_the_script_and_a_seed_is_one_of_main(bsp, program, tmp_path):
    done = bsp("experiment", "run", "--set", "n=7", "--seeds", 2, "--repeats", 1, program, "{n}")
    assert done.exit_code == 0, done.output
    found = [row["params"] for row in rows(tmp_path)]
    assert found == [{"N": 7, "seed": 0, "P": 2}, {"N": 7, "seed": 1, "P": 2}]


def test_an_error_of_the_script_ends_the_command_and_keeps_what_was_measured(
    bsp, program, tmp_path
):
    done = bsp("experiment", "run", "--set", "N=8,666,9", "--repeats", 1, program)
    assert done.exit_code == 1
    assert "the number of the beast" in done.output
    assert "stopped at N=666; the same command goes on after what is in" in done.output
    assert [row["params"]["N"] for row in rows(tmp_path)] == [8]


SENTENCES = {
    "an unknown name": (
        ["--set", "M=1"],
        "sweep.py runs has a parameter M, and no argument of",
    ),
    "no values": (["--set", "N"], "--set 'N' is no name with values; write --set N=1024:262144:x2"),
    "a falling range": (["--set", "N=9:1"], "--set N '9:1' is no rising range; write A:B"),
    "negative processes": (["--nprocs", "-3"], "--nprocs '-3' has to have positive integers only"),
    "half a process": (["--nprocs", "1.5"], "--nprocs '1.5' has to have positive integers only"),
    "a word": (["--nprocs", "many"], "--nprocs 'many': 'many' is no number"),
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
    "a folder": (["--out", "/"], "'/' is a directory"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_a_wrong_option_is_refused_in_one_sentence(bsp, program, case):
    options, sentence = SENTENCES[case]
    done = bsp("experiment", "run", *options, program)
    assert done.exit_code != 0
    *_, last = done.output.strip().splitlines()
    assert last.startswith("Error: ")
    assert sentence in last


def test_a_counter_that_is_not_there_is_told_and_left_out(bsp, program, tmp_path, monkeypatch):
    def refuse(name):
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(counters, "_open", refuse)
    done = bsp("experiment", "run", "--repeats", 1, "--set", "N=1", "--counters", "cycles", program)
    assert done.exit_code == 0, done.output
    sentence = "--counters: cycles is not counted: the system does not allow it (sysctl"
    assert sentence in done.output
    assert "counted" not in rows(tmp_path)[0]


def test_a_script_without_experiments_is_told(bsp, script):
    plain = script("import bsplib\nbsplib.run(lambda bsp: None, nprocs=1, backend='sim')", "p.py")
    done = bsp("experiment", "run", plain)
    assert "p.py measured nothing: write with bsp.experiment(...), or #cll" in done.output
    assert "nothing was measured: no block is an experiment" in bsp("run", "--cll", plain).output


COMMENTED = """
import bsplib

def main(bsp, n):
    #cll f f[0]*n
    bsp.charge(1e-3 * n)
    #cll end f

if __name__ == "__main__":
    bsplib.run(main, 4, nprocs=2, backend="sim")
"""


def test_comments_count_with_cll_only(bsp, script, tmp_path):
    program = script(COMMENTED, "commented.py")
    assert bsp("run", program).exit_code == 0
    assert not list(tmp_path.glob("*.jsonl"))
    done = bsp("run", "--cll", program)
    assert done.exit_code == 0, done.output
    assert "experiments f added to commented.experiments.jsonl: bsp fit" in done.output
    swept = bsp("experiment", "run", "--cll", "--set", "n=1:3", "--repeats", 1, program)
    assert swept.exit_code == 0, swept.output
    (found,) = datafile.experiments(rows(tmp_path, "commented.experiments.jsonl")).values()
    assert found.values["n"] == [4, 1, 2, 3]


def test_a_wrong_comment_is_one_sentence_of_the_command(bsp, script):
    program = script(COMMENTED.replace("#cll end f", "#cll end g"), "commented.py")
    for command in (["run", "--cll"], ["experiment", "run", "--cll"]):
        done = bsp(*command, program)
        assert done.exit_code != 0
        assert "commented.py:7: #cll end g stands inside of f, which began in line 5" in done.output
        assert "Traceback" not in done.output


def test_files_are_merged_and_shown(bsp, program, tmp_path):
    for number in (1, 2):
        bsp("experiment", "run", "--set", f"N={number}", "--out", f"{number}.jsonl", program)
    done = bsp("experiment", "merge", "--out", "all.jsonl", "1.jsonl", "2.jsonl", "1.jsonl")
    assert "6 passages in all.jsonl" in done.output
    shown = bsp("experiment", "show", "all.jsonl").output
    assert "f: f[0]*P + f[1]*N/P" in shown
    assert "passages" in shown
    (tmp_path / "empty.jsonl").write_text("")
    assert (
        "empty.jsonl has no passages of experiments"
        in bsp("experiment", "show", "empty.jsonl").output
    )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", (3,)),
        ("1,2,4", (1, 2, 4)),
        ("1:16:x2", (1, 2, 4, 8, 16)),
        ("2^10:2^12:*2", (1024, 2048, 4096)),
        ("1:10:+4", (1, 5, 9)),
        ("1:3,8", (1, 2, 3, 8)),
        ("0.5:2:x2", (0.5, 1.0, 2.0)),
        ("-2:2:+2", (-2, 0, 2)),
    ],
)
def test_values_are_read(text, values):
    assert read_values("--set N", text) == values


@pytest.mark.parametrize(
    "text", ["", "1,,2", "1:8:2", "0:8:x2", "1:8:x1", "1:8:+0", "nan", "1:x:2"]
)
def test_values_that_are_none_are_refused(text):
    with pytest.raises(UsageError, match=r"^--set N "):
        read_values("--set N", text)


def test_combinations_are_all_of_them():
    known = dict(map(read_setting, ["a=1,2", "b=3,4"]))
    assert combinations(known) == [
        {"a": 1, "b": 3},
        {"a": 1, "b": 4},
        {"a": 2, "b": 3},
        {"a": 2, "b": 4},
    ]
    assert combinations({}) == [{}]
