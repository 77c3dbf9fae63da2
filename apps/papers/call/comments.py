"""Comments that make blocks of a program experiments: ``#cll f f[0] + f[1]*N`` .. ``#cll end f``.

Plain Python ignores them. Where they count, the statements between two of them become the
body of a ``with`` statement in the syntax tree; all statements keep their lines and columns.
The values of the names in a formula are those of the variables at that place.

Source: Gonzalez et al., section 3: the pragmas of CALL.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source
from types import CodeType, FrameType, ModuleType
from typing import Any

from bsplib import call_site
from bsplib.apps.papers.call.counters import counting
from bsplib.errors import UsageError
from bsplib.experiments.blocks import MEASURED, ExperimentBlock
from bsplib.experiments.formula import FormulaError, read_formula
from bsplib.running.script import run_file

_COMMENT = re.compile(r"#\s*cll\b(?P<text>.*)", re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*")
_MARK = "__bsp_cll__"
_TOGETHER = "both comments belong into one list of statements, at one indentation"


@dataclass(frozen=True)
class _Directive:
    """A comment, which begins a block or ends it."""

    place: str
    """File and line."""
    line: int
    indent: str
    name: str
    formula: str = ""
    """Empty where the comment ends the block."""
    sync: bool = False

    @property
    def variables(self) -> list[str]:
        """Names in the formula that the program has to have."""
        return [each for each in read_formula(self.formula).variables if each not in MEASURED]


def instrument(source: str, file: str) -> ast.Module | None:
    """Make blocks of the comments in a program.

    Args:
        source: text of the program.
        file: its name, for errors.

    Returns:
        The syntax tree of the program; None if there are no such comments.

    Raises:
        UsageError: a comment cannot be read, stands where no statement can, or blocks are not
            nested; one sentence with file and line.
        SyntaxError: the program cannot be compiled, comments or not.
    """
    if "cll" not in source:
        return None
    compile(source, file, "exec", dont_inherit=True)  # it has no other errors than its own
    directives = {each.line: each for each in _directives(source, file)}
    if not directives:
        return None
    tree = _with_marks(source, file, directives)
    _Wrapper(directives, file).visit(tree)
    return ast.fix_missing_locations(tree)


def _directives(source: str, file: str) -> Iterator[_Directive]:
    """Yield the comments of a program, in order."""
    lines = source.splitlines()
    depth = 0
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    joined_until = 0
    for token in tokens:
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        match = _COMMENT.fullmatch(token.string) if token.type == tokenize.COMMENT else None
        line = token.start[0]
        if match is None or line <= joined_until:
            continue
        place = f"{file}:{line}"
        if depth or lines[line - 1][: token.start[1]].strip():
            raise UsageError(f"{place}: a #cll comment has to stand alone, between statements")
        text, joined_until = _joined(match["text"], lines, line)
        yield _directive(text.split(), place, line, lines[line - 1][: token.start[1]])


def _joined(text: str, lines: Sequence[str], line: int) -> tuple[str, int]:
    """Return the text of a comment, with the lines in which it goes on after a backslash."""
    while text.rstrip().endswith("\\") and line < len(lines):
        more = lines[line].strip()
        text = f"{text.rstrip()[:-1]} {more.lstrip('#').removeprefix('cll')}"
        line += 1
    return text, line


def _directive(words: list[str], place: str, line: int, indent: str) -> _Directive:
    """Read the words of a comment."""
    match words:
        case ["end", name]:
            return _Directive(place, line, indent, name)
        case ["end", *_]:
            raise UsageError(f"{place}: {' '.join(words)!r} names no block; write #cll end f")
    is_sync = words[:1] == ["sync"] and len(words) > 2
    name, *formula = words[is_sync:] or [""]
    text = " ".join(formula)
    if not _NAME.fullmatch(name) or not text:
        raise UsageError(
            f"{place}: {' '.join(['#cll', *words])!r} is no name with a formula; write "
            f"#cll f f[0] + f[1]*N, and #cll end f at the end"
        )
    try:
        read_formula(text)
    except FormulaError as error:
        reason = str(error).removeprefix("formula: ")
        raise UsageError(f"{place}: experiment {name}: {reason}") from None
    return _Directive(place, line, indent, name, text, is_sync)


def _with_marks(source: str, file: str, directives: Mapping[int, _Directive]) -> ast.Module:
    """Return the syntax tree of a program with a statement in the place of each comment."""
    lines = source.splitlines(keepends=True)
    for line, each in directives.items():
        lines[line - 1] = f"{each.indent}{_MARK}\n"
    try:
        return ast.parse("".join(lines), file)
    except SyntaxError as error:
        last = max((line for line in directives if line <= (error.lineno or 0)), default=0)
        each = directives[last or min(directives)]
        raise UsageError(
            f"{each.place}: this #cll comment stands where no statement can; indent it as the "
            f"statements of its block"
        ) from None


class _Wrapper(ast.NodeTransformer):
    """Puts the statements of each block into a ``with`` statement."""

    def __init__(self, directives: Mapping[int, _Directive], file: str) -> None:
        self._directives = directives
        self._file = file

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Wrap the blocks in each list of statements of a node, the inner ones first."""
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and any(map(_is_mark, statements)):
                setattr(node, name, self._wrapped(statements))
        return node

    def _wrapped(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[list[ast.stmt]] = [[]]
        begun: list[_Directive] = []
        for statement in statements:
            if not _is_mark(statement):
                found[-1].append(statement)
                continue
            each = self._directives[statement.lineno]
            if each.formula:
                begun.append(each)
                found.append([])
            elif not begun:
                raise UsageError(
                    f"{each.place}: #cll end {each.name} ends no block of these statements; "
                    f"{_TOGETHER}"
                )
            else:
                first, body = begun.pop(), found.pop()
                if first.name != each.name:
                    raise UsageError(
                        f"{each.place}: #cll end {each.name} stands inside of {first.name}, which "
                        f"began in line {first.line} and has to end first"
                    )
                found[-1].append(self._with(first, body, statement))
        if begun:
            raise UsageError(
                f"{begun[-1].place}: {begun[-1].name} does not end in these statements; write "
                f"#cll end {begun[-1].name}: {_TOGETHER}"
            )
        return found[0]

    def _with(self, each: _Directive, body: list[ast.stmt], end: ast.stmt) -> ast.stmt:
        """Return the statement of a block."""
        values = ", ".join(f"{name!r}: {name}" for name in each.variables)
        call = (
            f"__import__({__name__!r}, fromlist=['block']).block("
            f"{each.name!r}, {each.formula!r}, {each.sync}, {{{values}}}, {each.place!r})"
        )
        context = ast.parse(call, mode="eval").body
        for node in ast.walk(context):
            if isinstance(node, ast.expr):
                node.lineno = node.end_lineno = each.line
                node.col_offset, node.end_col_offset = 0, 0
        made = ast.With([ast.withitem(context)], body or [ast.Pass()])
        ast.copy_location(made, end)
        made.lineno, made.end_lineno = each.line, end.lineno
        return made


def _is_mark(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Name)
        and statement.value.id == _MARK
    )


def block(
    name: str, formula: str, sync: bool, values: dict[str, Any], place: str
) -> AbstractContextManager[None]:
    """Return the block of a comment in the innermost group that is open in this process.

    Raises:
        UsageError: no run is under way here, or a value is no number.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_call_main" and call_site.is_own(frame.f_code):
            group = frame.f_locals["group"]
            while getattr(group, "_inner", None) is not None:
                group = group._inner
            made = group.experiment(name, formula, sync=sync, **values)
            return counting(made) if isinstance(made, ExperimentBlock) else made
        frame = frame.f_back
    raise UsageError(
        f"{place}: experiment {name}: no run of bsplib is under way here; put the block into main, "
        f"or into what main calls"
    )


# -- programs and modules ------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Loads a module with the blocks of its comments; nothing is cached."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: Any, path: Any, **_: Any) -> CodeType:  # type: ignore[override]
        source = decode_source(data)
        tree = instrument(source, str(path))
        code: CodeType = compile(source if tree is None else tree, path, "exec", dont_inherit=True)
        return code


class _CommentFinder(MetaPathFinder):
    """Finds modules that have such comments."""

    def __init__(self) -> None:
        # This imports modules at its first call, which must not be while one is looked for here.
        call_site.is_installed("")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module; None if it has no such comments."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not _has_comments(spec):
            return None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin)
        spec.cached = None
        return spec


def _has_comments(spec: ModuleSpec) -> bool:
    """Tell whether a module of the user may have such comments, and was loaded without blocks."""
    if type(spec.loader) is not SourceFileLoader or spec.origin is None:
        return False
    if call_site.is_installed(spec.origin) or call_site.is_own_file(spec.origin):
        return False
    try:
        return b"cll" in spec.loader.get_data(spec.origin)
    except OSError:  # the file has gone
        return False


def install(*, afresh: bool = False) -> None:
    """Let such comments count in all modules that are imported from now on.

    Args:
        afresh: forget modules with such comments that were imported before, as multiprocessing
            does where processes are not forked.
    """
    if any(isinstance(finder, _CommentFinder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _CommentFinder())
    for name, module in list(sys.modules.items()) if afresh else ():
        spec = getattr(module, "__spec__", None)
        if spec is not None and _has_comments(spec):
            del sys.modules[name]


def uninstall() -> None:
    """Let such comments count no longer."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _CommentFinder)]


def run_script(script: str) -> None:
    """Run a script as ``python SCRIPT`` does, with the blocks of its comments.

    Raises:
        UsageError: a comment cannot be used.
        BaseException: what the script raises.
    """
    run_file(script, _Loader("__main__", script))
