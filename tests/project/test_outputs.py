"""No command and no function replaces a file of the user, unless it is asked to.

The tests find the commands, and the statements that write, by themselves: a new one is
tested, or has to be described here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import bsplib
from bsplib import webui
from bsplib.command_options import OutputFile
from bsplib.profiler import plotting
from bsplib.profiler.predict import files as timings
from bsplib.tools.cli.export import _formats
from tests.commands import of_apps, of_bsp, run_bsp

ROOT = Path(__file__).parents[2]
MINE = "print('a program of the user')\n"

READ = {
    "bsp compare before",
    "bsp compare after",
    "bsp export file",
    "bsp papers call file",
    "bsp predict targets",
    "bsp recover folders",
    "bsp report file",
    "bsp view before",
    "bsp view files",
    "bsp view model",
    "bsp view sources",
    "external_sort source",
}
"""Parameters that name what a command reads."""

TESTED_BELOW = {
    "bsp export out": "test_no_format_of_an_export_replaces_a_file",
    "bsp sweep out": "test_a_sweep_keeps_its_traces_beside_no_file_of_the_user",
    "external_sort target": "test_a_sort_replaces_its_source_and_no_other_file",
    "sql generate folder": "test_the_queries_replace_no_relation",
    "sql run out": "test_the_queries_replace_no_relation",
    "sql run folder": "it is read",
    "sql story out": "its files are traces",
}
"""Parameters of which the file is not known before the command has begun."""


COMMANDS = {f"bsp {name}": command for name, command in of_bsp().items()} | of_apps()
PATHS = {
    f"{name} {parameter.name}": (command, parameter)
    for name, command in COMMANDS.items()
    for parameter in command.params
    if isinstance(parameter.type, click.Path)
}
OUTPUTS = {name: found for name, found in PATHS.items() if isinstance(found[1].type, OutputFile)}


def test_each_parameter_that_names_a_file_is_known_to_read_or_to_write():
    assert set(PATHS) - set(OUTPUTS) == READ | set(TESTED_BELOW)
    assert len(OUTPUTS) > 15
    for test in set(TESTED_BELOW.values()) - {"it is read", "its files are traces"}:
        assert test in globals()


@pytest.fixture
def keep(tmp_path, monkeypatch):
    """A file of the user, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keep.py").write_text(MINE)
    return Path("keep.py")


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_command_begins_that_would_replace_a_file_of_the_user(name, keep):
    command, parameter = OUTPUTS[name]
    option = max(parameter.opts, key=len)
    is_argument = isinstance(parameter, click.Argument)
    words = [str(keep), "program.py"] if is_argument else [option, str(keep)]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 1
    assert f"{keep} exists" in done.output
    assert "name another file, or" in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert keep.read_text() == MINE


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_command_whose_output_can_be_forced_has_the_option(name):
    command, parameter = OUTPUTS[name]
    replaces = parameter.type.replaces
    by_force = replaces is None or replaces.by_force
    options = [option for each in command.params for option in each.opts]
    assert not by_force or "--force" in options


def count(bsp):
    bsp.charge(1e-3)
    bsp.put((bsp.pid + 1) % bsp.nprocs, 1.0, bsp.zeros(1), offset=0)
    bsp.sync()


@pytest.fixture
def trace(tmp_path):
    """A small trace."""
    bsplib.run(count, nprocs=2, backend="sim", profile=tmp_path / "run.bsp")
    return tmp_path / "run.bsp"


@pytest.mark.parametrize("form", _formats(), ids=lambda form: form.name)
def test_no_format_of_an_export_replaces_a_file(form, keep, trace, monkeypatch):
    if form.name == "pdf":  # which dot of Graphviz writes, and that is not everywhere
        monkeypatch.setattr("bsplib.profiler.drawing.picture.run_dot", lambda *_, **__: b"drawn")
    asked = ["export", "--format", form.name, "--out", keep, trace]
    done = run_bsp(*asked)
    assert done.exit_code == 1
    assert f"out: {keep} exists" in done.output
    assert keep.read_text() == MINE
    assert run_bsp(*asked, "--force").exit_code == 0
    assert keep.read_bytes() != MINE.encode()
    again = run_bsp(*asked)
    assert (again.exit_code == 0) == (form.name == "html")  # a page replaces a page


@pytest.mark.lengthy
def test_a_page_replaces_a_page(trace, tmp_path):
    page = tmp_path / "run.html"
    for _ in range(2):
        assert run_bsp("view", "--html", page, trace).exit_code == 0


def test_a_script_recorded_into_a_script_leaves_it_as_it_is(keep, tmp_path):
    (tmp_path / "b.py").write_text("raise SystemExit('was run')")
    done = run_bsp("run", "--profile", keep, "b.py")
    assert done.output == (
        f"Error: profile: {keep} exists and is not a trace; name another file, or remove it\n"
    )
    assert keep.read_text() == MINE


def test_a_probe_does_not_begin_where_its_file_exists(keep):
    Path("here.toml").write_text(MINE)
    done = run_bsp("machine", "probe", "--name", "here")
    assert "out: here.toml exists already" in done.output
    assert Path("here.toml").read_text() == MINE


def test_blocks_of_call_are_added_to_nothing_but_a_data_file(keep):
    Path("b.py").write_text(
        "import bsplib\n\ndef main(bsp):\n    #cll f f[0]\n    bsp.sync()\n    #cll end f\n\n"
        "if __name__ == '__main__':\n    bsplib.run(main, nprocs=1, backend='sim')\n"
    )
    Path("b.call.jsonl").write_text(MINE)
    done = run_bsp("papers", "call", "b.py")
    assert "b.call.jsonl exists and is not a data file of CALL" in done.output
    assert Path("b.call.jsonl").read_text() == MINE


def test_a_file_that_the_program_makes_while_it_is_recorded_stays(keep, tmp_path):
    def main(bsp):
        if bsp.pid == 0:
            (tmp_path / "new.bsp").write_text(MINE)
        bsp.sync()

    with pytest.warns(bsplib.TraceWarning, match=r"exists and is not a trace.*records are kept"):
        bsplib.run(main, nprocs=2, backend="sim", profile="new.bsp")
    assert Path("new.bsp").read_text() == MINE


def test_a_sweep_keeps_its_traces_beside_no_file_of_the_user(keep):
    Path("kept").mkdir()
    Path("kept/block=2.bsp").write_text(MINE)
    Path("steps.py").write_text(
        "import bsplib\ndef main(bsp, block):\n    bsp.sync()\n"
        "if __name__ == '__main__':\n    bsplib.run(main, 1, nprocs=2, backend='sim')\n"
    )
    done = run_bsp("sweep", "--set", "block=1:2", "--repeats", 1, "--out", "kept", "steps.py")
    assert "block=2.bsp exists and is not a trace" in done.output
    assert sorted(path.name for path in Path("kept").iterdir()) == ["block=1.bsp", "block=2.bsp"]
    assert Path("kept/block=2.bsp").read_text() == MINE


def test_a_sort_replaces_its_source_and_no_other_file(keep):
    np.save("keys.npy", np.arange(100.0)[::-1])
    sort = COMMANDS["external_sort"]
    place = ["--backend", "sim", "-n", "2"]
    done = CliRunner().invoke(sort, [*place, "keys.npy", str(keep)])
    assert f"{keep} exists already" in done.output
    assert keep.read_text() == MINE
    assert CliRunner().invoke(sort, [*place, "keys.npy"]).exit_code == 0
    assert np.load("keys.npy")[0] == 0.0
    assert CliRunner().invoke(sort, [*place, "--force", "keys.npy", str(keep)]).exit_code == 0


def test_the_queries_replace_no_relation(keep):
    pytest.importorskip("pyarrow")
    Path("made").mkdir()
    for name in ("made/TRAN.parquet", "made/TEMP3.parquet"):
        Path(name).write_text(MINE)
    asked = [
        ("sql generate", ["made", "--size", "20"], "TRAN"),
        ("sql run", ["--size", "20", "--out", "made", "--backend", "sim"], "TEMP3"),
    ]
    for name, words, taken in asked:
        done = CliRunner().invoke(COMMANDS[name], words)
        assert f"{taken}.parquet exists already" in done.output
    assert sorted(path.name for path in Path("made").iterdir()) == ["TEMP3.parquet", "TRAN.parquet"]
    assert {path.read_text() for path in Path("made").iterdir()} == {MINE}


def write_timings(path, **more):
    Path("times.csv").write_text("N,time\n1,1\n2,2\n3,3\n")
    timings.write_timings(timings.read_timings("times.csv"), path, **more)


def write_html(path, **more):
    bsplib.run(count, nprocs=2, backend="sim", profile="run.bsp")
    webui.write_html(bsplib.load("run.bsp").trace, path, **more)


def plot(path, **more):
    plotting.save(plotting.new_figure(1, 1), path, **more)


@pytest.mark.parametrize("write", [write_timings, write_html, plot])
@pytest.mark.parametrize("name", ["keep.svg", "link.svg"])
def test_a_function_replaces_a_file_only_by_force(write, name, keep):
    keep.rename("keep.svg")
    Path("link.svg").symlink_to("keep.svg")
    with pytest.raises((OSError, ValueError, bsplib.BspError), match=r"exists .*force=True"):
        write(Path(name))
    assert Path("keep.svg").read_text() == MINE
    write(Path(name), force=True)
    assert Path("keep.svg").read_text() != MINE
    assert Path("link.svg").is_symlink()


def record_later(keep):
    with bsplib.Pool(nprocs=2) as pool:
        pool.profile = keep


RECORDINGS = {
    "run": lambda keep: bsplib.run(count, nprocs=2, backend="sim", profile=keep),
    "Pool": lambda keep: bsplib.Pool(nprocs=2, profile=keep),
    "Pool, later": record_later,
}


@pytest.mark.parametrize("way", RECORDINGS.values(), ids=RECORDINGS)
def test_a_recording_replaces_nothing_but_a_trace(way, keep, tmp_path):
    with pytest.raises(bsplib.UsageError, match=r"keep.py exists and is not a trace; name another"):
        way(keep)
    assert keep.read_text() == MINE


WRITERS = {
    "apps/sorting/keycheck.py": "writes keys into a folder that it has made",
    "apps/sorting/keyfile.py": "makes files with mode x, which replaces none",
    "apps/sql/files.py": "writes to the temporary name that output_file yields",
    "bsplib/tools/cli/export.py": "writes to the temporary name that output_file yields",
    "bsplib/core/_build.py": "writes the note beside the core that it has built",
    "apps/papers/call/datafile.py": "adds lines to what is recognised as a data file",
    "apps/papers/call/session.py": "opens os.devnull",
    "bsplib/backends/table.py": "opens os.devnull",
    "bsplib/output_file.py": "holds the rule",
    "bsplib/tools/cli/sweep.py": "opens os.devnull",
    "bsplib/recording/parts.py": "writes records into a folder that it has made",
    "bsplib/recording/record_folder.py": "writes into the folder of records",
    "bsplib/recording/spool.py": "writes records into the folder of records",
    "bsplib/record/build.py": "opens its lock below the cache of the user",
    "bsplib/record/compiler.py": "writes below the cache of the user, to temporary names",
    "bsplib/record/libraries.py": "writes a note below the cache of the user",
    "bsplib/recording/trace.py": "writes to the temporary name that output_file yields",
    "bsplib/running/terminal.py": "opens the terminal",
    "profiler/export/pprof.py": "writes into the file that bsp export has opened",
    "webui/terms.py": "writes a script of the page, for who changes its names",
    "profiler/plotting.py": "writes to the temporary name that output_file yields",
}
"""Modules that open files to write, and why that replaces no file of the user."""

METHODS = {"write_text", "write_bytes", "savefig", "rename", "write_table", "to_csv", "tofile"}


def writes(call):
    """Tell whether a call opens or replaces a file to write, as far as its text says."""
    function = call.func
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if function.attr in METHODS and owner not in {"atomics"}:
            return True
        if function.attr == "replace":
            return owner == "os" or len(call.args) == 1  # of a path; that of a text has two
        if function.attr in {"copyfile", "copy2", "move"}:
            return owner == "shutil"
    name = getattr(function, "attr", getattr(function, "id", ""))
    modes = [each.value for each in call.args if isinstance(each, ast.Constant)]
    modes += [each.value.value for each in call.keywords if isinstance(each.value, ast.Constant)]
    return name in {"open", "fdopen", "ZipFile", "GzipFile"} and any(
        isinstance(mode, str) and set(mode) <= set("wxabt+") and set(mode) & set("wxa+")
        for mode in modes
    )


@pytest.mark.lengthy  # it parses all files
def test_all_files_are_written_by_the_module_that_holds_the_rule():
    found = set()
    for room in ("bsplib", "profiler", "webui", "apps"):
        for path in (ROOT / room).rglob("*.py"):
            calls = (
                node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
            )
            if any(map(writes, calls)):
                found.add(str(path.relative_to(ROOT)))
    assert found == set(WRITERS)
