"""``%%bsp``: run a cell in every process of a pool that is kept from cell to cell."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import linecache
import re
import symtable
import sys
import tempfile
import time
import traceback
from argparse import Namespace
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from bsplib.backends import table as backends
from bsplib.errors import ArgumentError, BspError, UsageError
from bsplib.extras import optional_module
from bsplib.group import Group
from bsplib.running.failures import RemoteTraceback
from bsplib.running.pool import Pool

with contextlib.suppress(ImportError):  # not on Windows, where no kernel reads a pipe
    import fcntl
    import termios

_magic_arguments = optional_module("IPython.core.magic_arguments")
_display = optional_module("IPython.display")

_ABOUT = """Run the cell in every process of a BSP machine.

    %%bsp -n 4
    x = bsp.zeros(1)
    bsp.put((bsp.pid + 1) % bsp.nprocs, bsp.pid, x)
    bsp.sync()
    x[0]

The cell is the body of main(bsp). The values of the notebook that it names come into every
process as copies, and functions, classes and modules as they are. What the cell assigns stays
in the process, for later cells; what its last expression is worth comes out: the output
of the cell is the list of these values by pid, which --out also gives a name. A semicolon at
the end hides it. Each line that a process prints begins with its pid. The processes are kept
for later cells with the same options, until %unload_ext bsplib or the end of the notebook."""

_FRAME = re.compile(r'  File "([^"\n]*)", line (\d+), in .*\n(?!    )')
"""A frame of a traceback without the text of its line."""

_LOOK_S = 0.002
_MOST_LINES_S = 0.5
"""Seconds to wait at most for the lines of processes."""

_OF_POOL = ("nprocs", "backend", "machine", "check")
"""The options that a pool has for all its runs."""


class BspMagic:
    """The magic ``%%bsp`` of one notebook, with the processes that it keeps.

    Args:
        shell: the shell of IPython in which the cells run.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._parser = _parser()
        self._chosen: dict[str, Any] = {}
        self._pool: Pool | None = None
        self._left: dict[str, Any] = {}
        """What names that cells have left in the processes stood for in the notebook then."""
        self._registered: frozenset[str] = frozenset()
        """Those of them that are registered arrays on all processes."""

    def register(self) -> None:
        """Make ``%%bsp`` known to the shell."""

        def bsp(line: str, cell: str) -> Any:
            return self._cell(line, cell)

        bsp.__doc__ = self._parser.format_help()
        self._shell.register_magic_function(bsp, "cell", "bsp")

    def close(self) -> None:
        """End the processes, and take the magic away."""
        self._end()
        self._shell.magics_manager.magics["cell"].pop("bsp", None)

    def _end(self) -> None:
        pool, self._pool = self._pool, None
        self._left, self._registered = {}, frozenset()
        _values.clear()
        if pool is not None:
            pool.close()

    # -- a cell ---------------------------------------------------------------------------------

    def _cell(self, line: str, cell: str) -> Any:
        options = self._parser.parse_argstring(line)
        name = f"In[{len(self._shell.history_manager.input_hist_raw) - 1}]"
        try:
            _check(options)
            self._ready(options)
            program = program_of(cell, f"%%bsp {line}", name, self._shell.user_ns, self._kept())
            results = self._run(program, options)
        except Exception as error:
            with contextlib.suppress(Exception):  # a foreign __setattr__ may forbid it
                error._render_traceback_ = partial(_rendered, error, name)  # type: ignore[attr-defined]  # IPython calls it
            raise
        if options.out:
            self._shell.user_ns[options.out] = results
        is_hidden = cell.rstrip().endswith(";")
        return None if is_hidden or all(result is None for result in results) else results

    def _kept(self) -> list[str]:
        """Return the names of the processes' values that the notebook has not assigned since."""
        now = self._shell.user_ns
        return [name for name, then in self._left.items() if now.get(name, then) is then]

    def _run(self, program: CellProgram, options: Namespace) -> list[Any]:
        """Run a program; show the call graph if it is recorded."""
        kept = program.kept
        program.arguments[_KEPT] = kept._replace(registered=self._registered)
        pool = self._ready(options)
        with tempfile.TemporaryDirectory(prefix="bsp-cell-") as folder:
            pool.profile = None
            if options.profile is not None:
                pool.profile = Path(options.profile or f"{folder}/cell.bsp")
            try:
                left = pool.run(program.main, *program.arguments.values(), timeout=options.timeout)
            except ArgumentError as error:
                raise _in_words_of_notebook(error, program) from None
            finally:
                _await_lines()
            if pool.profile is not None:
                _show(pool.profile, options.metric)
        names = self._shell.user_ns
        self._left |= {name: names.get(name, _NOTHING) for name in (*kept.assigned, *kept.taken)}
        others = self._registered - kept.assigned - {*kept.taken}
        self._registered = others.union(set.intersection(*(registered for _, registered in left)))
        return [result for result, _ in left]

    def _ready(self, options: Namespace) -> Pool:
        """Return the pool for some options: the one that is kept, or another one in its place."""
        chosen = {name: getattr(options, name) for name in _OF_POOL}
        if self._pool is None or chosen != self._chosen:
            self._end()
            made = Pool(**chosen)
            conditions = made._setting.conditions._replace(label=True)
            made._setting = made._setting._replace(conditions=conditions)
            self._pool, self._chosen = made, chosen
        return self._pool


def _check(options: Namespace) -> None:
    """Check what the parser of the options cannot."""
    if options.out and not options.out.isidentifier():
        raise UsageError(f"%%bsp: --out is {options.out!r}; it is a name for the list of results")
    if options.profile is not None:
        from bsplib.profiler.critical import VIEWS  # noqa: PLC0415  # only where a cell is recorded

        if options.metric not in VIEWS:
            raise UsageError(
                f"%%bsp: no critical path is called {options.metric!r}; they are {', '.join(VIEWS)}"
            )


def _parser() -> Any:
    """Return the parser of the options of ``%%bsp``."""
    kind = _magic_arguments.MagicArgumentParser
    parser = kind("%bsp", description=_ABOUT, formatter_class=_magic_arguments.MagicHelpFormatter)
    add = parser.add_argument
    add("-n", "--nprocs", type=int, help="number of processes; default: the cores of this computer")
    names = ", ".join(backends.every_name())
    add("--backend", default=backends.DEFAULT, help=f"{names}; default: {backends.DEFAULT}")
    add("--machine", help="Machine whose parameters price the communication of --backend sim")
    add("--check", action="store_true", help="report what is legal but probably a mistake")
    add("--timeout", type=float, metavar="SECONDS", help="end a cell that takes longer")
    add(
        "--profile",
        nargs="?",
        const="",
        metavar="FILE",
        help=("record the cell, and show its call graph; the trace is kept if FILE is given"),
    )
    add(
        "--metric",
        default="loss",
        help=("what shades the call graph: loss (default), or a critical path such as comp-abs"),
    )
    add("-o", "--out", metavar="NAME", help="also bind the list of results to this name")
    return parser


def _in_words_of_notebook(error: ArgumentError, program: CellProgram) -> ArgumentError:
    """Return an error about an argument of the program with its name in the notebook."""
    names = [*program.arguments]
    text = re.sub(
        r"run: argument (\d+) of main",
        lambda found: f"%%bsp: {names[int(found[1]) - 1]!r} of the notebook",
        str(error),
    )
    return ArgumentError(text)


def _await_lines() -> None:
    """Wait until the kernel of a notebook has read what the processes have printed.

    It reads their lines from a pipe, and shows them with the cell that runs at that moment.
    """
    if not hasattr(sys.stdout, "watch_fd_thread"):  # no kernel
        return
    left = array("i", [1])
    deadline = time.monotonic() + _MOST_LINES_S
    while left[0] and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        with contextlib.suppress(OSError):  # this output is no pipe
            fcntl.ioctl(1, termios.FIONREAD, left)


def _show(trace: Path, path: str) -> None:
    """Show the call graph of the last run in a trace, and what it loses."""
    from bsplib.loading import load  # noqa: PLC0415  # only where a cell is recorded

    run = load(trace).runs[-1]
    for sentence in run.verdict().sentences:
        print(sentence.text)
    _display.display(run.picture(path))


def _rendered(error: BaseException, cell: str) -> list[str]:
    """Return what IPython shows of an error: a sentence, below the lines of the program.

    Args:
        error: of bsplib, which says where it was raised, or of the program.
        cell: name of the cell.
    """
    notes = [line for note in getattr(error, "__notes__", ()) for line in note.split("\n")]
    if isinstance(error, BspError):
        return [f"{type(error).__name__}: {error}", *notes]
    if isinstance(error.__cause__, RemoteTraceback):
        text = _FRAME.sub(_with_line, error.__cause__.args[0])
        return [*text.rstrip().split("\n"), *notes]
    inside = error.__traceback__
    while inside is not None and inside.tb_frame.f_code.co_filename != cell:
        inside = inside.tb_next
    inside = inside or error.__traceback__
    return "".join(traceback.format_exception(type(error), error, inside)).rstrip().split("\n")


def _with_line(frame: re.Match[str]) -> str:
    """Return a frame of another process with the text of its line, which is known only here."""
    line = linecache.getline(frame[1], int(frame[2])).strip()
    return f"{frame[0]}    {line}\n" if line else frame[0]


# -- a cell of a notebook as a program: a function whose body is the text of the cell -------------
#
# The values of the notebook that the cell names become arguments of the function, so that every
# process has copies of its own. Functions, classes and modules stay globals of the function.


_GROUP = "bsp"
_KEPT = "_kept"
"""The parameter of the function by which it takes and keeps values in the process."""
_NOTHING = object()


class CellProgram(NamedTuple):
    """What the processes run for a cell."""

    main: FunctionType
    arguments: dict[str, Any]
    """Values of the notebook by their names, in the order of the parameters after the group."""
    kept: Kept


def program_of(
    cell: str, magic: str, name: str, namespace: dict[str, Any], left: Sequence[str] = ()
) -> CellProgram:
    """Make a program of a cell.

    Args:
        cell: text of the cell, without its first line.
        magic: its first line.
        name: what errors and the call graph call the cell, such as ``In[5]``.
        namespace: names of the notebook.
        left: names that earlier cells have left in the processes.

    Raises:
        UsageError: the cell has no statements, or is not Python that may stand in a function.
    """
    _remember(name, f"{magic}\n{cell}")
    try:
        body = ast.parse(f"\n{cell}", name).body  # its first line is the magic
        if not body:
            raise UsageError("%%bsp: the cell has no statements; write the program below this line")
        code = _code(body, [], name, [])
    except SyntaxError as error:
        line = f": {error.text.strip()}" if error.text else ""
        raise UsageError(f"%%bsp: {error.msg} [{name}:{error.lineno}{line}]") from None
    named = [each for each in _names(body) if each != _GROUP]
    taken = [each for each in named if each in left]
    own = {*code.co_varnames, *code.co_cellvars} - {_GROUP, _KEPT}  # assigned in the cell
    arguments: dict[str, Any] = {_KEPT: None} | {
        each: namespace[each]
        for each in named
        if each in namespace and each not in taken
        if each in own or not _stays(namespace[each])
    }
    code = _code(body, list(arguments), name, taken)
    kept = Kept(taken, frozenset(own))
    return CellProgram(FunctionType(code, namespace, "main"), arguments, kept)


def _remember(name: str, text: str) -> None:
    """Let tracebacks show the lines of a cell."""
    lines = [f"{line}\n" for line in text.split("\n")]
    linecache.cache[name] = len(text), None, lines, name


class _Keeping(ast.NodeTransformer):
    """Lets each return of the function of a cell keep its names; not those of functions inside."""

    def visit_Return(self, node: ast.Return) -> ast.Return:  # ast calls it
        kept, group, found = (ast.Name(name, ast.Load()) for name in (_KEPT, _GROUP, "locals"))
        keep = ast.Attribute(kept, "keep", ast.Load())
        value = node.value or ast.Constant(None)
        call = ast.Call(keep, [group, value, ast.Call(found, [], [])], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Return(call), node))

    def visit_FunctionDef(self, node: ast.stmt) -> ast.stmt:  # as above
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815  # as above


def _code(body: list[ast.stmt], parameters: list[str], name: str, taken: list[str]) -> CodeType:
    """Compile the function of a cell, which returns the value of its last expression.

    Args:
        body: of the cell.
        parameters: after the group.
        name: of the cell.
        taken: names whose values earlier cells have left in the process.
    """
    last = body[-1]
    if isinstance(last, ast.Expr):
        end = ast.Return(last.value)
        body = [*body[:-1], ast.copy_location(end, last)]
    else:
        at = last.end_lineno or last.lineno
        end = ast.Return(None, lineno=at, end_lineno=at, col_offset=0, end_col_offset=0)
        body = [*body, end]
    body = [_Keeping().visit(copy.deepcopy(each)) for each in body]
    if taken:
        body = [*ast.parse(f"[{', '.join(taken)}] = {_KEPT}.take({_GROUP})").body, *body]
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


# -- what a cell leaves in each process, for later cells on the same processes --------------------
# The names that a cell assigns are local names of its function, as in every program. At its end
# they are noted here, in the process, and a later cell that names them is given them when it
# begins. Registered arrays are allocated and registered anew then, since a registration is of one
# run.


_values: dict[int, dict[str, Any]] = {}
"""By pid, since all virtual processors are in one process, and by name."""


class Kept(NamedTuple):
    """What a cell takes when it begins, and keeps at its end."""

    taken: Sequence[str]
    """Names of values that earlier cells have left."""
    assigned: frozenset[str]
    """Names that the cell assigns."""
    registered: frozenset[str] = frozenset()
    """Names that stand for registered arrays on all processes."""

    def take(self, bsp: Group) -> list[Any]:
        """Return the values by their names.

        Raises:
            UsageError: this process did not execute the cell that assigned them.
        """
        mine = _values.get(bsp.pid, {})
        for name in self.taken:
            if name not in mine:
                raise UsageError(
                    f"%%bsp: process {bsp.pid} has no {name!r} of an earlier cell: it was not "
                    f"assigned there, or the processes were started anew since"
                )
        return [
            bsp.array(mine[name]) if name in self.registered else mine[name] for name in self.taken
        ]

    def keep(self, bsp: Group, result: Any, found: dict[str, Any]) -> tuple[Any, set[str]]:
        """Keep what the names of a cell stand for at its end.

        Returns:
            The result, and the names of registered arrays.
        """
        registered = set()
        mine = _values.setdefault(bsp.pid, {})
        for name in self.assigned.union(self.taken).intersection(found):
            value = found[name]
            if isinstance(value, np.ndarray):
                if bsp._registry.named_by(value) is not None:
                    registered.add(name)
                if not value.flags.owndata:  # the memory may be that of the run
                    value = value.copy()
            mine[name] = value
        return result, registered


# -- ``%load_ext bsplib`` and ``%unload_ext bsplib`` ----------------------------------------------


_loaded: dict[int, BspMagic] = {}
"""By the identity of the shell."""


def load(shell: Any) -> None:
    """Add ``%%bsp`` to a shell of IPython."""
    magic = _loaded[id(shell)] = BspMagic(shell)
    magic.register()


def unload(shell: Any) -> None:
    """Take ``%%bsp`` away from a shell, and end its processes."""
    if (magic := _loaded.pop(id(shell), None)) is not None:
        magic.close()
