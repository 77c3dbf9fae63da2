"""The helps of all commands: one form, examples that the commands take, errors as sentences."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

import bsplib
from bsplib.tools.cli import main
from tests.commands import run_bsp


def all_commands(group=main, name="bsp"):
    """Every command by the words that call it, groups too."""
    yield name, group
    for inner, command in getattr(group, "commands", {}).items():
        yield from all_commands(command, f"{name} {inner}")


COMMANDS = dict(all_commands())
WITH_EXAMPLES = [name for name in COMMANDS if name != "bsp"]


def help_of(name):
    done = CliRunner().invoke(COMMANDS[name], ["--help"], prog_name=name)
    assert done.exit_code == 0
    return done.output


def test_the_list_of_commands_has_every_one_once_with_its_whole_first_sentence():
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", help_of("bsp"), re.MULTILINE)
    assert sorted(listed) == sorted(main.commands)
    assert "..." not in help_of("bsp").partition("Run and record")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_begins_with_a_sentence_and_fits_on_a_terminal(name):
    text = help_of(name)
    first = COMMANDS[name].help.split("\n\n")[0].split()
    assert first[0][0].isupper()
    assert first[-1].endswith(".")
    assert not first[0].endswith("s")  # an imperative: print, not prints
    assert max(map(len, text.splitlines())) <= 80
    assert "\\b" not in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_takes_in_one_word_of_the_manual(name):
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert option.help.split("  [")[0].endswith((".", "]")), option.help
            assert option.envvar is None or option.envvar in help_of(name)
    assert not re.search(r"\b(INTEGER|FLOAT|RANGE|DIRECTORY)\b", help_of(name))


def examples(name):
    section = help_of(name).partition("Example")[2]
    return re.findall(rf"^    ({re.escape(name.split()[0])} .*)$", section, re.MULTILINE)


def refused(command, context, words):
    """The type of the error that a command raises for its arguments."""
    try:
        command.parse_args(context, list(words))
    except click.UsageError as error:
        return type(error)
    return None


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_every_example_is_a_line_that_the_command_takes(name):
    assert examples(name)
    for line in examples(name):
        words = shlex.split(line)[1:]
        command, called = main, "bsp"
        while isinstance(command, click.Group) and words[:1] and words[0] in command.commands:
            called = f"{called} {words[0]}"
            command = command.commands[words.pop(0)]
        assert called.startswith(name)
        context = click.Context(command, info_name=called)
        assert refused(command, context, words) in (None, click.BadParameter)  # no such file


WRONG = [
    (["run", "-n", "x", "p.py"], "'x' is not a valid whole number."),
    (["run", "--timeout", "-1", "p.py"], "-1.0 is not in the range x>0."),
    (["run", "--timeout", "x", "p.py"], "'x' is not a valid number."),
    (["run", "-m", "p.py"], "'p.py' is no module that can be run: .*; name it as in an import, w"),
    (["report", "--top", "-1", "t.bsp"], "-1 is not in the range x>=0."),
    (["report", "nosuch.bsp"], r"nosuch\.bsp: cannot be read: No such file or directory"),
    (["view", "--sources", "nosuch", "t.bsp"], "Directory 'nosuch' does not exist"),
    (["recover", "nosuch"], "Directory 'nosuch' does not exist"),
    (["predict", "nosuch.csv"], r"nosuch\.csv: cannot be read: No such file or directory"),
    (["predict", "--at", "n", "t.bsp"], "'n' is no value of a variable: write it as N=2"),
    (["predict", "--formula", "f[0]", "t.bsp"], "--formula is not for traces"),
    (["predict", "p.py"], "has no column 'time' with times; name another by --time: imp"),
    (["papers", "--html", "/nosuch/x"], "html: there is no folder /nosuch"),
]


@pytest.mark.parametrize(("line", "sentence"), WRONG, ids=[" ".join(line) for line, _ in WRONG])
def test_wrong_input_is_an_error_of_one_sentence(line, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text("import bsplib\n")
    bsplib.run(lambda bsp: bsp.sync(), nprocs=2, backend="sim", profile="t.bsp")
    done = run_bsp(*line)
    assert done.exit_code in (1, 2)
    last = done.output.strip().splitlines()[-1]
    assert re.search(f"^Error: .*{sentence}", last), done.output
