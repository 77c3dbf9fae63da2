"""A cell of a notebook as a program: a function whose body is the text of the cell.

The values of the notebook that the cell names become arguments of the function, so that every
process has copies of its own. Functions, classes and modules stay globals of the function.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import symtable
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import cloudpickle

from bsplib.errors import UsageError
from bsplib.visible import text_of

_GROUP = "bsp"
_FIRST_LINE = 2
"""Of the program in its cell; the first line is the magic."""


class Program(NamedTuple):
    """What the processes run for a cell."""

    main: FunctionType
    arguments: dict[str, Any]
    """Values of the notebook by their names, in the order of the parameters after the group."""


def program_of(cell: str, magic: str, name: str, namespace: dict[str, Any]) -> Program:
    """Make a program of a cell.

    Args:
        cell: text of the cell, without its first line.
        magic: its first line.
        name: what errors and the call graph call the cell, such as ``In[5]``.
        namespace: names of the notebook.

    Raises:
        UsageError: the cell has no statements, or is not Python that may stand in a function.
    """
    _remember(name, f"{magic}\n{cell}")
    try:
        body = ast.parse("\n" * (_FIRST_LINE - 1) + cell, name).body
        if not body:
            raise UsageError("%%bsp: the cell has no statements; write the program below this line")
        code = _code(body, [], name)
    except SyntaxError as error:
        line = f": {error.text.strip()}" if error.text else ""
        raise UsageError(f"%%bsp: {error.msg} [{name}:{error.lineno}{line}]") from None
    taken = [each for each in _names(body) if each in namespace and each != _GROUP]
    own = {*code.co_varnames, *code.co_cellvars}  # assigned in the cell
    arguments = {
        each: namespace[each] for each in taken if each in own or not _stays(namespace[each])
    }
    code = _code(body, list(arguments), name)
    return Program(FunctionType(code, namespace, "main"), arguments)


def _remember(name: str, text: str) -> None:
    """Let tracebacks show the lines of a cell."""
    lines = [f"{line}\n" for line in text.split("\n")]
    linecache.cache[name] = len(text), None, lines, name


def _code(body: list[ast.stmt], parameters: list[str], name: str) -> CodeType:
    """Compile the function of a cell, which returns the value of its last expression."""
    last = body[-1]
    if isinstance(last, ast.Expr):
        value = ast.copy_location(ast.Return(last.value), last)
        body = [*body[:-1], value]
    head = ", ".join([_GROUP, *parameters, "/"])
    tree = ast.parse(f"def main({head}): pass", name)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    module = compile(tree, name, "exec", dont_inherit=True)
    (code,) = (each for each in module.co_consts if isinstance(each, CodeType))
    return code


def _names(body: list[ast.stmt]) -> list[str]:
    """Return the names that a cell reads and that may be those of the notebook, sorted.

    Names that the cell declares global are left out: they are those of the process.
    """
    text = ast.unparse(ast.Module(body, []))
    inside = "\n".join(f"    {line}" for line in text.split("\n"))
    (table,) = symtable.symtable(f"def main({_GROUP}):\n{inside}", "", "exec").get_children()
    found = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    declared = {
        symbol.get_name()
        for each in _tables(table)
        for symbol in each.get_symbols()
        if symbol.is_declared_global()
    }
    for each in _tables(table):
        found |= {symbol.get_name() for symbol in each.get_symbols() if symbol.is_global()}
    return sorted(found - declared)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Return the tables of a function and of all functions inside it."""
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


def _stays(value: Any) -> bool:
    """Tell whether a value is a global of the program, and no argument."""
    return isinstance(value, ModuleType) or inspect.isclass(value) or inspect.isroutine(value)


def cannot_travel(program: Program) -> UsageError | None:
    """Return the error for the first value that cannot be sent to the processes."""
    for name, value in program.arguments.items():
        try:
            cloudpickle.dumps(value)
        except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
            return UsageError(
                f"%%bsp: {name!r} of the notebook cannot be copied for the processes: "
                f"{text_of(reason)}; make it in the cell, or do not name it there"
            )
    return None
