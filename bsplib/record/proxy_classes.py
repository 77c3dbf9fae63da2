"""Replaces classes of mpi4py by those of the proxies, so that programs notice almost nothing.

A program can ask for the class of an object, derive classes from mpi4py's, turn a communicator into
a handle and back, and pickle what MPI has predefined. So each class is replaced in the module
together with its predefined objects. Objects that MPI has made in calls that are not recorded keep
the class of mpi4py; ``isinstance`` tells that they are instances of the new class, too.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from typing import Any

_FROM_HANDLES = ("fromhandle", "fromint", "f2py")
"""Methods of classes that return an object for a handle of MPI."""


class Replacing(ABCMeta):
    """The class of classes that stand for one of mpi4py.

    It is derived from ABCMeta, since a program may derive a class from one of them and from an
    abstract one.
    """

    bsp_replaced: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            "bsp_replaced" in cls.__dict__ and isinstance(instance, cls.bsp_replaced)
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass) or (
            "bsp_replaced" in cls.__dict__ and issubclass(subclass, cls.bsp_replaced)
        )


class Replacements:
    """The classes that stand for those of one ``mpi4py.MPI``, and its predefined objects.

    Args:
        mpi: the module.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._classes: dict[type, Any] = {}
        self._predefined: dict[int, Any] = {}
        """The objects that stand for those of mpi4py, by the ``id`` of these: they last."""
        self._originals: dict[int, Any] = {}
        """The objects of mpi4py, by the ``id`` of the objects that stand for them."""

    def add(self, base: Any, members: dict[str, Any], *others: Any) -> Any:
        """Return a class for one of mpi4py, which :meth:`install` puts into its place.

        Args:
            base: the class of mpi4py.
            members: methods and attributes of the new class besides those of ``base``.
            others: classes from which it is derived besides ``base``.
        """
        more = {
            "bsp_replaced": base,
            "__module__": base.__module__,
            "__doc__": base.__doc__,
            "__reduce__": self._reduce(base),
            **{
                name: self._from_handle(getattr(base, name))
                for name in _FROM_HANDLES
                if hasattr(base, name)
            },
        }
        made = Replacing(base.__name__, (base, *others), more | members)
        self._classes[base] = made
        return made

    def install(self) -> None:
        """Replace the classes in the module, and the predefined objects that are of them."""
        mpi = self._mpi
        for name, each in list(vars(mpi).items()):
            if type(each) in self._classes:
                self._predefined[id(each)] = made = self.of(each)
                self._originals[id(made)] = each
                setattr(mpi, name, made)
        for base, made in self._classes.items():
            setattr(mpi, base.__name__, made)

    def of(self, found: Any) -> Any:
        """Return the object that stands for one of mpi4py; others are returned as they are."""
        made = self._classes.get(type(found))
        if made is None:
            return found
        return self._predefined.get(id(found)) or made(found)

    def original(self, found: Any) -> Any:
        """Return what a predefined object stands for; others are returned as they are.

        mpi4py knows its own predefined objects, and does not free them.
        """
        return self._originals.get(id(found), found)

    def _from_handle(self, function: Callable[..., Any]) -> Any:
        """Return a method of a class that returns an object for a handle."""

        def method(_: Any, *handle: Any, **by_name: Any) -> Any:
            return self.of(function(*handle, **by_name))

        method.__name__, method.__doc__ = function.__name__, function.__doc__
        return classmethod(method)

    def _reduce(self, base: Any) -> Any:
        """Return the method that says how an object is pickled: only predefined ones can be."""

        def __reduce__(found: Any) -> Any:  # noqa: N807  # what pickle calls
            function, (kind, original) = base.__reduce__(found)
            predefined = self._predefined[id(original)]
            name = original.__reduce__()
            return name if found is predefined else (function, (kind, predefined))

        return __reduce__
