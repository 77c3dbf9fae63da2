"""The type variables of ``run`` and ``Pool.run``: what a ``main`` takes, and what it returns."""

from __future__ import annotations

from typing import ParamSpec, TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
First = TypeVar("First")
Second = TypeVar("Second")
Third = TypeVar("Third")
Fourth = TypeVar("Fourth")
Fifth = TypeVar("Fifth")
Sixth = TypeVar("Sixth")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
