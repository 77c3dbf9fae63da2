"""A user's own formula, such as ``f[0] + f[1]*log2(P) + f[2]*(N/P)*log2(N/P)``.

Parameters are written with a number in brackets: ``f[0]``, ``A[1]``. All other names are
variables or functions. A formula is a sum of terms; each term is a parameter times an
expression of the variables, or an expression without a parameter. The syntax is that of
Python expressions, but only numbers, names, + - * / **, parentheses and ``FUNCTIONS`` are
allowed. The formula is never executed as Python code.

Source: Gonzalez et al., section 3: the formulas of CALL, in canonical form.
"""

from __future__ import annotations

import ast
import math
import operator
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.experiments.collective_costs import COST_FUNCTIONS, ROWS

Column = NDArray[np.float64]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "min": np.minimum,
    "max": np.maximum,
    "above": lambda value, limit: np.where(np.greater(value, limit), 1.0, 0.0),
}
"""``min``, ``max`` and ``above`` take two values, the others one; ``log`` is the natural logarithm,
and ``above(n, c)`` is 1 where n is greater than c, otherwise 0."""
_CALLABLE = FUNCTIONS | COST_FUNCTIONS | {"grid_rows": ROWS}
"""All functions of formulas, and those that only laws of node models use."""
_ARGUMENTS = {"min": 2, "max": 2, "above": 2, **dict.fromkeys(COST_FUNCTIONS, 4)}
"""How many values a function takes that does not take one."""

Terms = dict[str, Any]
"""The factor of each parameter, by its name; terms without a parameter have an empty name."""

MOST_CHARACTERS = 1000
_DEEPEST = 50
"""Formulas come from files of others, too: nested without a bound, one would exhaust the stack."""

_OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class FormulaError(ValueError):
    """A formula cannot be read or evaluated; the text is one sentence."""


@dataclass(frozen=True)
class Formula:
    """A formula that has been read.

    Attributes:
        text: the formula as it was written.
        parameters: names of the parameters, in the order of the text.
        variables: names of the variables, in the order of the text.
    """

    text: str
    parameters: tuple[str, ...]
    variables: tuple[str, ...]
    _tree: ast.expr

    def parts(self) -> dict[str, str]:
        """Return what each parameter is multiplied by, as text, where it is a term of a sum."""
        found, waiting = {}, [self._tree]
        while waiting:
            match waiting.pop():
                case ast.BinOp(left=left, op=ast.Add(), right=right):
                    waiting += [right, left]
                case node:
                    text = ast.get_source_segment(self.text.strip(), node) or ""
                    name = next((each for each in self.parameters if each in text), None)
                    if name is not None and text.count("[") == 1:
                        found[name] = text.replace(name, "1", 1).removeprefix("1*")
        return found

    def columns(self, values: Mapping[str, ArrayLike]) -> tuple[NDArray[np.float64], Column]:
        """Evaluate the factor of each parameter.

        Args:
            values: values of the variables by name, which are numbers or arrays of equal
                length; other names are ignored.

        Returns:
            An array with a row for each element and a column for each parameter, and
            the sum of the terms without a parameter.

        Raises:
            FormulaError: a variable is missing, or a value is not a finite number.
        """
        missing = [name for name in self.variables if name not in values]
        if missing:
            raise FormulaError(
                f"formula: {missing[0]} has no value; the variables are {', '.join(values)}"
            )
        arrays = [np.atleast_1d(np.asarray(values[name], np.float64)) for name in self.variables]
        shape = np.broadcast_shapes((1,), *(array.shape for array in arrays))
        named = dict(zip(self.variables, arrays, strict=True))
        with np.errstate(all="ignore"):
            terms = _evaluate(self._tree, named)
        columns = [np.broadcast_to(terms.get(name, 0.0), shape) for name in self.parameters]
        rest = np.broadcast_to(terms.get("", 0.0), shape)
        for name, column in zip((*self.parameters, "the rest"), (*columns, rest), strict=True):
            wrong = np.flatnonzero(~np.isfinite(column))
            if len(wrong):
                at = {
                    name: np.broadcast_to(array, shape)[wrong[0]] for name, array in named.items()
                }
                where = ", ".join(f"{name} = {value:g}" for name, value in at.items())
                raise FormulaError(f"formula: the term of {name} is not finite at {where}")
        return np.stack(columns, axis=1), rest


def read_formula(text: str) -> Formula:
    """Read a formula.

    Raises:
        FormulaError: the text is no formula, or no sum of parameters times expressions.
    """
    if len(text) > MOST_CHARACTERS:
        raise FormulaError(f"formula: {len(text)} characters are too many; use {MOST_CHARACTERS}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise FormulaError(f"formula: {text!r} is not a valid expression") from None
    parameters, variables = _names(tree)
    if not parameters:
        raise FormulaError(f"formula: {text!r} has no parameter such as f[0]")
    formula = Formula(text, tuple(parameters), tuple(variables), tree)
    with np.errstate(all="ignore"):  # evaluate at 1 to check that the formula is linear
        _evaluate(tree, dict.fromkeys(variables, np.ones(1)))
    return formula


def _names(tree: ast.expr) -> tuple[dict[str, None], dict[str, None]]:
    """Return parameters and variables; refuse whatever is not allowed in a formula."""
    parameters: dict[str, None] = {}
    variables: dict[str, None] = {}
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEEPEST:
            raise FormulaError(f"formula: it is nested more than {_DEEPEST} deep")
        match node:
            case ast.Constant(value=int() | float() as value) if _is_number(value):
                pass
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as number)):
                parameters[f"{name}[{number!r}]"] = None
            case ast.Name(id=name) if name not in _CALLABLE:
                variables[name] = None
            case _:
                waiting += [(inner, depth + 1) for inner in _inner(node)[::-1]]
    return parameters, variables


def _inner(node: ast.expr) -> list[ast.expr]:
    """Return the operands of an operation or a call."""
    match node:
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
            return [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return [operand]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLABLE:
            wanted = _ARGUMENTS.get(name, 1)
            if len(args) != wanted:
                some = "1 argument" if wanted == 1 else f"{wanted} arguments"
                raise FormulaError(f"formula: {name} takes {some}, not {len(args)}")
            return args
    raise FormulaError(
        f"formula: {_shown(node)} is not allowed; use numbers, variables, parameters such as "
        f"f[0], + - * / **, parentheses, {', '.join(FUNCTIONS)}"
    )


def _shown(node: ast.expr) -> str:
    try:
        return reprlib.repr(ast.unparse(node))
    except RecursionError:
        return "a deeply nested expression"


def _is_number(value: float) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except OverflowError:
        return False


def _evaluate(node: ast.expr, values: Mapping[str, Column]) -> Terms:
    """Evaluate an expression that :func:`_names` has checked."""
    match node:
        case ast.Constant(value=value):
            return {"": np.float64(value)}  # type: ignore[arg-type]  # _names checked: a number
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=number)):
            return {f"{name}[{number!r}]": np.float64(1)}
        case ast.Name(id=name):
            return {"": values[name]}
        case ast.UnaryOp(op=op, operand=operand):
            sign = -1 if isinstance(op, ast.USub) else 1
            return {name: sign * term for name, term in _evaluate(operand, values).items()}
        case ast.Call(func=ast.Name(id=name), args=args):
            arguments = [_evaluate(argument, values) for argument in args]
            return {"": _CALLABLE[name](*(_plain(argument, node) for argument in arguments))}
        case ast.BinOp(left=left, op=op, right=right):
            return _combine(node, op, _evaluate(left, values), _evaluate(right, values))
    raise AssertionError(node)


def _combine(node: ast.expr, op: ast.operator, left: Terms, right: Terms) -> Terms:
    """Evaluate an operation of two expressions."""
    if isinstance(op, ast.Add | ast.Sub):
        apply = _OPERATORS[type(op)]
        return {
            name: apply(left.get(name, 0.0), right.get(name, 0.0))
            for name in (*left, *(name for name in right if name not in left))
        }
    if isinstance(op, ast.Mult) and set(left) == {""}:
        left, right = right, left
    factor = _plain(right, node)
    if isinstance(op, ast.Pow):
        return {"": _plain(left, node) ** factor}
    return {name: _OPERATORS[type(op)](term, factor) for name, term in left.items()}


def _plain(terms: Terms, node: ast.expr) -> Any:
    """Return the value of an expression; raise if it contains a parameter."""
    if set(terms) - {""}:
        raise FormulaError(
            f"formula: {ast.unparse(node)} is not linear in {sorted(set(terms) - {''})[0]}; a "
            f"formula is a sum of parameters times expressions without parameters"
        )
    return terms[""]
