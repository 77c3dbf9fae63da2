"""What the command lines of all applications have in common."""

from __future__ import annotations

import importlib

import click
import pytest

from bsplib.apps.sql.cli import cli as sql
from bsplib.tools.cli import main as bsp

APPS = (
    "broadcast",
    "fourier.fft",
    "fourier.fft_barrier_free",
    "fourier.fft_cyclic",
    "prediction",
    "sorting.bitonic_sort",
    "sorting.external_sort",
    "sorting.psrs",
    "sorting.sample_sort",
)


def commands(command, name):
    """Each command, also those of groups, with its name."""
    if isinstance(command, click.Group):
        for part, inner in command.commands.items():
            yield from commands(inner, f"{name} {part}")
    else:
        yield name, command


def all_commands():
    yield from commands(bsp, "bsp")
    yield from commands(sql, "sql")
    for app in APPS:
        yield from commands(importlib.import_module(f"apps.{app}").command, app)


COMMANDS = dict(all_commands())


def test_there_are_commands_with_a_number_of_processes():
    taking = [name for name, command in COMMANDS.items() if options(command)]
    assert {
        "bsp run",
        "bsp machine probe",
        "bsp sweep",
        "sql story",
        "sorting.psrs",
        "prediction",
    } <= set(taking)


def options(command):
    """The ways to write the option for the number of processes."""
    return [part.opts for part in command.params if {"-n", "--nprocs"} & set(part.opts)]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_number_of_processes_may_be_written_in_both_ways(name):
    assert all({"-n", "--nprocs"} <= set(opts) for opts in options(COMMANDS[name]))
