"""``%%bsp`` in a shell of IPython: cells as programs."""

from __future__ import annotations

import builtins
import os
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import bsplib
from bsplib.recording.trace import read_trace

pytestmark = pytest.mark.real_processes


@pytest.fixture(scope="module")
def loaded():
    """A shell that has executed ``%load_ext bsplib``; what it changes elsewhere is put back."""
    main, names = sys.modules["__main__"], set(dir(builtins))
    prompts = [name for name in ("ps1", "ps2", "ps3") if not hasattr(sys, name)]
    config = Config(HistoryManager={"enabled": False})  # it would have a thread
    made = InteractiveShell.instance(config=config, colors="nocolor")
    made.run_cell("%load_ext bsplib", store_history=True).raise_error()
    yield made
    made.run_cell("%unload_ext bsplib").raise_error()
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main
    for name in set(dir(builtins)) - names:
        delattr(builtins, name)
    for name in prompts:
        delattr(sys, name)


@pytest.fixture
def shell(loaded):
    """Executes cells; what each shows is an object with result, text, errors and pictures."""
    before = dict(loaded.user_ns)

    def execute(cell):
        with capture_output() as shown:
            done = loaded.run_cell(cell, store_history=True)
        return SimpleNamespace(
            result=done.result,
            error=done.error_in_exec,
            text=shown.stdout,
            errors=shown.stderr,
            pictures=[
                each.data["image/svg+xml"] for each in shown.outputs if "image/svg+xml" in each.data
            ],
        )

    execute.names = loaded.user_ns
    yield execute
    for name in set(loaded.user_ns) - set(before):
        del loaded.user_ns[name]


def test_every_process_runs_the_cell_and_its_last_expression_is_the_result(shell):
    cell = """%%bsp -n 3
x = bsp.zeros(1, int)
bsp.put((bsp.pid + 1) % bsp.nprocs, bsp.pid, x)
bsp.sync()
int(x[0])"""
    assert shell(cell).result == [2, 0, 1]


def test_the_processes_are_kept_between_cells_with_the_same_options(shell):
    cell = "%%bsp -n 2\nimport os\nos.getpid()"
    first = shell(cell).result
    assert len(set(first)) == 2
    assert os.getpid() not in first
    assert shell(cell).result == first
    assert shell(cell.replace("-n 2", "-n 2 --check")).result != first


def test_a_cell_reads_values_of_the_notebook_and_changes_only_copies(shell):
    shell.names.update(n=3, data=np.arange(4.0))
    cell = "%%bsp -n 2 {}\nn = n + bsp.pid\ndata[0] += n\n(n, float(data[0]))"
    for backend in ("", "--backend sim"):
        assert shell(cell.format(backend)).result == [(3, 3.0), (4, 4.0)]
    assert shell.names["n"] == 3
    assert shell.names["data"][0] == 0


@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_a_cell_uses_functions_classes_and_modules_of_the_notebook(shell, kind):
    shell(
        "import math\n"
        "class Point:\n    def __init__(self, x): self.x = x\n"
        "def make(bsp, x):\n    bsp.sync()\n    return Point(math.sqrt(x))"
    )
    cell = f"%%bsp -n 2 --backend {kind}\nmake(bsp, 4 * math.floor(1.5) + 5 * bsp.pid)"
    results = shell(cell).result
    assert [type(each) for each in results] == [shell.names["Point"]] * 2
    assert [each.x for each in results] == [2.0, 3.0]


def test_names_in_functions_of_a_cell_are_found(shell):
    shell.names.update(offset=10, timeout=5, nprocs=7)
    cell = """%%bsp -n 2
def shifted(x):
    return x + offset + timeout + nprocs
[shifted(x) for x in range(2)]"""
    assert shell(cell).result == [[22, 23]] * 2


@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_arrays_stay_in_the_processes_and_registered_from_cell_to_cell(shell, kind):
    magic = f"%%bsp -n 3 --backend {kind}\n"
    shell(f"{magic}x = bsp.array([float(bsp.pid)] * 2)\ny = [bsp.pid]\nview = x[1:];")
    assert shell.names.get("x") is None
    cell = "bsp.put((bsp.pid + 1) % 3, x[:1], x[1:])\nbsp.sync()\nx.tolist()"
    assert shell(magic + cell).result == [[0, 2], [1, 0], [2, 1]]
    assert shell(magic + cell).result == [[0, 2], [1, 0], [2, 1]]
    assert shell(f"{magic}y.append(1)\nfloat(x.sum()), y, len(view)").result == [
        (2, [0, 1], 1),
        (1, [1, 1], 1),
        (3, [2, 1], 1),
    ]
    assert shell(f"{magic}y").result == [[0, 1], [1, 1], [2, 1]]


def test_a_name_stands_for_what_was_assigned_last_in_the_notebook_or_in_a_cell(shell):
    shell("n = 10")
    assert shell("%%bsp -n 2\nn += bsp.pid\nn").result == [10, 11]
    assert shell("%%bsp -n 2\nn").result == [10, 11]
    shell("n = 20")
    assert shell("%%bsp -n 2\nn").result == [20, 20]
    assert shell.names["n"] == 20


def test_what_a_cell_returns_early_keeps_its_names_and_what_fails_keeps_none(shell):
    cell = "%%bsp -n 2 --backend sim\nx = bsp.pid\nif x == 1:\n    return 'early'\ny = 5\nx"
    assert shell(cell).result == [0, "early"]
    assert shell("%%bsp -n 2 --backend sim\nx").result == [0, 1]
    failed = shell("%%bsp -n 2 --backend sim\nx = 7\n1 / 0")
    assert isinstance(failed.error, ZeroDivisionError)
    assert shell("%%bsp -n 2 --backend sim\nx").result == [0, 1]
    shown = shell("%%bsp -n 2 --backend sim\ny")
    assert "process 1 has no 'y' of an earlier cell: it was not assigned there" in str(shown.error)


def test_other_processes_have_nothing_of_earlier_cells(shell):
    shell("%%bsp -n 2 --backend sim\nkept = bsp.pid")
    shown = shell("%%bsp -n 3 --backend sim\nkept")
    assert "name 'kept' is not defined" in shown.errors + shown.text


def test_a_name_that_is_local_to_a_function_of_the_cell_brings_no_value(shell):
    shell.names["lock"] = __import__("threading").Lock()  # which cannot be sent
    assert shell("%%bsp -n 1\ndef twice(lock):\n    return 2 * lock\ntwice(2)").result == [4]


def test_a_value_that_cannot_be_sent_is_named(shell):
    shell.names["lock"] = __import__("threading").Lock()
    done = shell("%%bsp -n 2\nlock.locked()")
    assert isinstance(done.error, bsplib.UsageError)
    assert done.text.startswith(
        "ArgumentError: %%bsp: 'lock' of the notebook, of type lock, cannot be pickled, "
    )
    assert done.text.count("\n") == 1


def test_the_results_get_a_name_and_a_semicolon_hides_them(shell):
    done = shell("%%bsp -n 2 --out pids\nbsp.pid;")
    assert (done.result, done.text) == (None, "")
    assert shell.names["pids"] == [0, 1]


def test_a_cell_without_results_shows_none(shell):
    done = shell("%%bsp -n 2\nbsp.sync()")
    assert (done.result, done.text, done.error) == (None, "", None)


def test_lines_that_virtual_processors_print_begin_with_their_pid(shell):
    done = shell("%%bsp -n 2 --backend sim\nprint('here')")
    assert sorted(done.text.splitlines()) == ["[0] here", "[1] here"]


# -- records ----------------------------------------------------------------------------------


def test_a_recorded_cell_shows_its_call_graph_and_what_is_lost(shell):
    cell = """%%bsp -n 2 --backend sim --profile
def slow():
    bsp.charge(1.0 if bsp.pid else 0.1)
    bsp.sync()
slow()"""
    done = shell(cell)
    (picture,) = done.pictures
    assert "slow" in picture
    assert "In[" in picture
    assert "lost in main.<locals>.slow (In[" in done.text
    assert "by process 1 (fixed straggler)" in done.text
    assert shell("%%bsp -n 2 --backend sim\nbsp.sync()").pictures == []


def test_the_trace_of_a_cell_is_kept_in_a_named_file(shell, tmp_path):
    path = tmp_path / "cell.bsp"
    for number in (1, 2):
        assert len(shell(f"%%bsp -n 2 --profile {path} --metric sync\nbsp.sync()").pictures) == 1
        assert [run.nprocs for run in read_trace(path).runs] == [2] * number


# -- errors -----------------------------------------------------------------------------------


def test_a_wrong_call_is_shown_as_one_sentence_with_its_line(shell):
    done = shell("%%bsp -n 2\nbsp.sync()\nbsp.send(5, 'x')")
    lines = done.text.splitlines()
    assert lines[0].startswith("ProcessRangeError: send: there is no process 5 among 2 (0 to 1) [")
    assert lines[0].endswith(":3]")
    assert "In[" in lines[0]
    assert len(lines) <= 2  # how many more processes failed


@pytest.mark.parametrize("kind", ["shm", "sim"])
def test_an_error_of_the_program_is_shown_with_its_lines(shell, kind):
    done = shell(f"%%bsp -n 2 --backend {kind}\nif bsp.pid == 1:\n    [][3]\nbsp.sync()")
    assert isinstance(done.error, IndexError)
    lines = done.text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "    [][3]" in lines
    assert "IndexError: list index out of range" in lines
    assert "tools/notebook.py" not in done.text
    assert shell(f"%%bsp -n 2 --backend {kind}\nbsp.pid").result == [0, 1]


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("%%bsp -n 2\nx = (", r"UsageError: %%bsp: '(' was never closed [In[N]:2: x = (]"),
        ("%%bsp -n 2\n\n!ls", r"UsageError: %%bsp: invalid syntax [In[N]:3: !ls]"),
        (
            "%%bsp -n 2\n# nothing",
            r"UsageError: %%bsp: the cell has no statements; write the program below this line",
        ),
        ("%%bsp -n 0\nbsp.sync()", "ProcessRangeError: nprocs is 0; it may be 1 to 256 on shm"),
        (
            "%%bsp -n 2 --out 3x\nbsp.pid",
            "UsageError: %%bsp: --out is '3x'; it is a name for the list of results",
        ),
        ("%%bsp --backend nosuch\nbsp.pid", "UsageError: there is no backend 'nosuch'; choose"),
        ("%%bsp --machine nosuch\nbsp.pid", "UsageError: machine: there is no Machine 'nosuch'"),
        (
            "%%bsp --profile --metric up\nbsp.pid",
            "UsageError: %%bsp: no critical path is called 'up'; they are loss, sync",
        ),
        ("%%bsp --profile /dev/null\nbsp.pid", "UsageError: profile: /dev/null is a device"),
        ("%%bsp -n 1\nyield 1", "ArgumentError: run: main is a generator function"),
        (
            "%%bsp -n 2 --timeout 0.2\nimport time\ntime.sleep(60)",
            "RunTimeoutError: run: the program took longer",
        ),
    ],
)
def test_a_mistake_is_shown_as_a_sentence(shell, cell, sentence):
    shown = shell(cell).text
    number = shown.partition("In[")[2].partition("]")[0]
    assert shown.startswith(sentence.replace("[N]", f"[{number}]")), shown
    assert "Traceback" not in shown


# -- the extension ------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["%%bsp --nosuch", "%%bsp -n two"])
def test_an_unknown_option_is_shown_as_a_sentence(shell, line):
    done = shell(f"{line}\nbsp.sync()")
    assert done.errors.startswith("UsageError: ")
    assert done.errors.count("\n") <= 2
    assert done.text == ""


def test_unloading_ends_the_processes_and_takes_the_magic_away(shell):
    pids = shell("%%bsp -n 2\nimport os\nos.getpid()").result
    shell("%unload_ext bsplib")
    deadline = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert "Cell magic `%%bsp` not found" in shell("%%bsp\nbsp.pid").errors
    shell("%load_ext bsplib")
    assert shell("%%bsp -n 1\nbsp.pid").result == [0]


def test_the_help_names_every_option(loaded):
    text = loaded.magics_manager.magics["cell"]["bsp"].__doc__
    for option in ("nprocs", "backend", "machine", "check", "timeout", "profile", "metric", "out"):
        assert f"--{option}" in text
