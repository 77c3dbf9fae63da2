"""Mutants that each leave one check out of the token of life, and one that leaves each hook out.

They are made of the sources: in one function a comparison is false, or a statement does nothing.
The function gets the code of that, wherever it has been bound: so the core has to be interpreted.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple

MODULES = (
    *("core.engine", "core.observed", "core.values"),
    *("group", "primitives.arrays", "primitives.collective_mail", "primitives.combinations"),
    *("primitives.ending", "primitives.exchanges", "primitives.mailbox"),
    *("primitives.oblivious", "primitives.remote", "primitives.state", "primitives.subgroups"),
    *("running.pool", "running.task"),
)
STATEMENTS = (
    *("_check_usable", "_check_not_over", "suspend", "retire", "_note_failure", "fail_for_good"),
    *("_fail_for_good", "_leave_to_parent", "forget_known_arrays"),
)
"""Methods and functions whose calls are left out, where they are statements."""


class Place(NamedTuple):
    """What one mutant leaves out."""

    module: str
    function: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.module}.{self.function}: {self.text}"


def _is_of_the_token(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=ast.Call(func=ast.Name(id="this_thread"))):
            return True
        case ast.Compare(left=ast.Attribute(attr="life") | ast.Name(id="life")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name in STATEMENTS
    return False


def places() -> Iterator[Place]:
    """Yield what can be left out."""
    for name in MODULES:
        module = importlib.import_module(f"bsplib.{name}")
        tree = ast.parse(inspect.getsource(module))
        for function, node in _nodes(tree, ""):
            if _is_of_the_token(node):
                text = ast.unparse(node)
                yield Place(name, function, node.lineno, node.col_offset, text)


def _nodes(tree: ast.AST, inside: str) -> Iterator[tuple[str, Any]]:
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{inside}.{node.name}" if inside else node.name
        elif inside:
            yield inside, node
        yield from _nodes(node, name)


class _LeftOut(ast.NodeTransformer):
    def __init__(self, place: Place) -> None:
        self._place = place

    def visit(self, node: ast.AST) -> Any:
        at = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        if at == (self._place.line, self._place.column) and _is_of_the_token(node):
            is_left_out = isinstance(node, ast.Expr)
            new = ast.Pass() if is_left_out else ast.Constant(_says_yes(node))
            return ast.copy_location(new, node)
        return self.generic_visit(node)


def _says_yes(node: Any) -> bool:
    """Tell what a comparison says where all is well."""
    return not isinstance(node.ops[0], ast.NotEq)


@contextmanager
def left_out(place: Place) -> Iterator[None]:
    """Leave something out."""
    module = importlib.import_module(f"bsplib.{place.module}")
    tree = ast.parse(inspect.getsource(module))
    tree = ast.fix_missing_locations(_LeftOut(place).visit(tree))
    code = compile(tree, module.__file__ or "", "exec", dont_inherit=True, flags=_ANNOTATIONS)
    function = _function(module, place.function)
    old = function.__code__
    function.__code__ = _code(code, place.function)
    try:
        yield
    finally:
        function.__code__ = old


_ANNOTATIONS = importlib.import_module("__future__").annotations.compiler_flag


def _function(module: Any, qualname: str) -> FunctionType:
    found = module
    for name in qualname.split("."):
        found = inspect.getattr_static(found, name)
    found = getattr(found, "__func__", getattr(found, "fget", found))
    return inspect.unwrap(found)


def _code(code: CodeType, qualname: str) -> CodeType:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == qualname:
                return each
            if qualname.startswith(f"{each.co_qualname}."):
                return _code(each, qualname)
    raise LookupError(qualname)
