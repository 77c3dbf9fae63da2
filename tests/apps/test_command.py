"""What the command lines of all applications have in common."""

from __future__ import annotations

import pytest

from tests.commands import of_apps, of_bsp

COUNTED = {
    name: options
    for name, command in (of_bsp() | of_apps()).items()
    for options in (parameter.opts for parameter in command.params)
    if {"-n", "--nprocs"} & {*options}
}
"""How the number of processes is written, by command."""


def test_there_are_commands_with_a_number_of_processes():
    assert {"run", "machine probe", "sweep", "sql story", "psrs", "prediction"} <= {*COUNTED}


@pytest.mark.parametrize("name", COUNTED)
def test_the_number_of_processes_may_be_written_in_both_ways(name):
    assert {"-n", "--nprocs"} <= {*COUNTED[name]}
