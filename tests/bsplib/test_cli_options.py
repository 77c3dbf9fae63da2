"""Options are of one kind in all commands; TAB completes files, Machines and words."""

from __future__ import annotations

import os
import shutil
import sys
from collections import defaultdict
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import bsplib
from bsplib.machine import known_machines
from bsplib.tools.cli import main
from tests.commands import of_apps, of_bsp, run_bsp
from tests.processes import run_command

COMMANDS = of_bsp()
"""What TAB completes."""
EVERY = {**COMMANDS, **of_apps()}


def options_of(command):
    """Return the options of a command that its help shows."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    return [option for option in options if not option.hidden]


def word(option):
    return max(option.opts, key=len)


def test_a_word_takes_a_value_in_all_commands_or_in_none():
    flags = defaultdict(set)
    short = defaultdict(set)
    for command in EVERY.values():
        for option in options_of(command):
            flags[word(option)].add(option.is_flag)
            short[word(option)].add(min(option.opts, key=len))
    assert [each for each, kinds in flags.items() if len(kinds) > 1] == []
    assert short["--nprocs"] == {"-n"}
    assert short["--out"] == {"-o"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a trace, a script and the file of a Machine."""
    monkeypatch.chdir(tmp_path)
    for name in ("sort.py", "here.toml"):
        (tmp_path / name).write_text("")
    bsplib.run(lambda bsp: bsp.sync(), nprocs=2, backend="sim", profile="sort.bsp")


def complete(*words):
    """Return what TAB offers after words, of which the last is not complete."""
    *before, last = words
    found = ShellComplete(main, {}, "bsp", "_BSP_COMPLETE").get_completions(before, last)
    return [(each.type, each.value) for each in found]


@pytest.mark.parametrize("name", COMMANDS)
def test_tab_completes_the_commands_options_and_files(name):
    words = name.split()
    assert ("plain", words[-1]) in complete(*words[:-1], words[-1][:2])
    offered = [value for _, value in complete(*words, "--")]
    assert {word(option) for option in options_of(COMMANDS[name])} <= {*offered}
    arguments = [each for each in COMMANDS[name].params if isinstance(each, click.Argument)]
    if arguments:
        begun = "sh" if name == "machine show" else "so"  # a Machine, and elsewhere a file
        assert complete(*words, begun)[0][0] in ("file", "dir", "plain")


FILES = [
    (name, option)
    for name, command in COMMANDS.items()
    for option in options_of(command)
    if isinstance(option.type, click.Path)
]


@pytest.mark.parametrize(("name", "option"), FILES, ids=lambda each: getattr(each, "name", each))
def test_tab_completes_files_after_each_option_that_names_one(name, option):
    kind = "dir" if not option.type.file_okay else "file"
    assert complete(*name.split(), word(option), "so") == [(kind, "so")]


WITH_MACHINES = [
    name for name, command in COMMANDS.items() if "--machine" in map(word, options_of(command))
]


@pytest.mark.parametrize("name", WITH_MACHINES)
def test_tab_completes_machines(name, here):
    offered = [value for _, value in complete(*name.split(), "--machine", "")]
    assert offered == list(known_machines())
    assert complete(*name.split(), "--machine", "her") == [("file", "her")]
    assert complete(*name.split(), "--machine", "cra") == [("plain", "cray-t3e-mpi")]


@pytest.mark.parametrize("name", ["report", "export"])
def test_tab_completes_metrics(name):
    assert ("plain", "comp-imb") in complete(name, "--metric", "comp")


def test_tab_completes_the_script_and_what_follows_it(here):
    assert complete("run", "-n", "4", "so") == [("file", "so")]
    assert complete("run", "sort.py", "da") == [("file", "da")]


def test_machines_are_listed_and_shown():
    done = run_bsp("machine", "list")
    assert done.exit_code == 0
    for name in known_machines():
        assert name in done.output
    shown = run_bsp("machine", "show", "ibm-sp2-pvm:l=1e-5")
    assert 'name = "IBM SP2, PVM"' in shown.output
    assert "l_s = 1e-05" in shown.output


@pytest.mark.parametrize("name", ["probe", "machines", "fit", "tune", "experiment"])
def test_an_earlier_name_of_a_command_says_the_new_one(name):
    done = run_bsp(name, "-n", "4", "some.file")
    assert done.exit_code == 2
    assert f"Error: bsp {name} is now bsp " in done.output


def test_an_earlier_name_of_an_order_says_the_new_one(here):
    done = run_bsp("report", "--sort", "cost", "some.file")
    assert done.exit_code == 2
    assert "the order cost is called time now" in done.output


def test_without_a_number_the_last_run_is_the_one_that_is_shown(here):
    bsplib.run(lambda bsp: bsp.sync(), nprocs=2, backend="sim", profile="sort.bsp")
    done = run_bsp("export", "--out", "x.csv", "sort.bsp")
    assert done.output.startswith("wrote x.csv, run 2 of 2")


@pytest.mark.lengthy
@pytest.mark.skipif(shutil.which("bash") is None, reason="it is about bash")
def test_bash_completes_what_the_page_says():
    program = (
        'eval "$(_BSP_COMPLETE=bash_source bsp)"\n'
        "COMP_WORDS=(bsp report --machine cra)\nCOMP_CWORD=3\n_bsp_completion bsp\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = run_command("bash", "-c", program, check=True, env=environment)
    assert done.stdout == "cray-t3e-mpi\n"
