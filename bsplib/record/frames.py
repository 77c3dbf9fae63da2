"""Names the Python call stacks from which MPI is called.

The shim recognises a call stack by itself and asks :class:`Stacks` only about one that it has not
met before. For this it finds the frames of the running thread in the memory of the interpreter.
Where they are differs by version of Python. :func:`offsets` returns their places for the versions
that it knows, and only if these places lead to the same frames as Python's own functions.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType

from bsplib.record.program import run_program

_WORD = ctypes.sizeof(ctypes.c_void_p)
_OF_FRAME = object.__basicsize__ + _WORD
"""Where a frame object has the address of its frame, in all versions that bsplib supports."""

_STATE_HAS_CFRAME = (56, {(3, 11): (8, 48, 56), (3, 12): (0, 8, 56)})
"""Python 3.11 and 3.12: where the state of a thread has the address of a structure; in it the
address of the frame; in a frame those of the previous one and of the current instruction."""
_STATE_HAS_FRAME = (8, 56)
"""Since Python 3.13 the state of a thread has the address of the frame itself. These are the last
two of the distances above: in a frame, those of the previous one and of the instruction."""

UNKNOWN_OFFSETS = (-1, 0, 0, 0, 0)
"""The shim then asks Python about each call."""

_LEFT_OUT = ("runpy.py", "<frozen runpy>", "<frozen importlib._bootstrap>")


_at = ctypes.c_uint64.from_address
"""Reads memory. It is no function of Python, which would be the running frame itself."""


def thread_state() -> Callable[[], int]:
    """Return Python's function that finds the state of the running thread, without its lock."""
    function = ctypes.CDLL(None).PyGILState_GetThisThreadState
    function.restype = ctypes.c_void_p
    function.argtypes = []
    return function


def offsets() -> tuple[int, int, int, int, int]:
    """Return where the frames are: for the shim's structure ``python``, in its order."""
    if sys.implementation.name != "cpython" or sys.maxsize < 1 << 32:
        return UNKNOWN_OFFSETS
    found = _expected()
    try:
        return found if found and _lead_to_frames(found) else UNKNOWN_OFFSETS
    except (AttributeError, ValueError):
        return UNKNOWN_OFFSETS


def _expected() -> tuple[int, int, int, int, int] | None:
    """Return what holds for this version of Python, as far as it is known."""
    state, by_version = _STATE_HAS_CFRAME
    version = sys.version_info[:2]
    if version in by_version:
        return (state, by_version[version][0], 0, *by_version[version][1:])
    if version not in ((3, 13), (3, 14)):
        return None
    mine = _at(id(sys._getframe()) + _OF_FRAME).value  # the caller's would do as well
    address = thread_state()()
    for at in range(3 * _WORD, 20 * _WORD, _WORD):
        if _at(address + at).value == mine:
            return (at, 0, 1, *_STATE_HAS_FRAME)
    return None


def _lead_to_frames(found: tuple[int, int, int, int, int]) -> bool:
    """Tell whether the offsets lead to this frame and to those that called it."""
    state, in_structure, by_frame, previous, instruction = found
    at = _at(thread_state()() + state).value
    if not by_frame:
        at = _at(at + in_structure).value
    frame: FrameType | None = sys._getframe()
    for _ in range(3):
        if frame is None or at != _at(id(frame) + _OF_FRAME).value:
            return False
        code = id(frame.f_code)
        if not code < _at(at + instruction).value < code + sys.getsizeof(frame.f_code):
            return False
        at, frame = _at(at + previous).value, frame.f_back
    return True


_SHOWN, _HIDDEN, _OUTSIDE = range(3)
"""Whether stacks show a function. _OUTSIDE: it is no part of the program, but has called it."""


class Stacks:
    """Numbers call stacks, and writes each new one.

    Args:
        write: writes the number of a stack and its frames, from the outermost to the innermost.
    """

    def __init__(self, write: Callable[[int, list[tuple[str, str, int, int, bool]]], None]) -> None:
        self._write = write
        self._shown: dict[tuple[int, ...], int] = {}
        """Key: the places of the frames that are shown, from the innermost: of each the sum of the
        address of its code and of the position in it, which lies inside that object."""
        self._kinds: dict[int, int] = {}
        """_SHOWN, _HIDDEN or _OUTSIDE; key: the address of the code of a function."""
        self._codes: list[CodeType] = []

    def number(self) -> int:
        """Return the number of the stack of the function that called this one.

        -1 if there is nothing of the program on it, and after an error: the program goes on.
        """
        try:
            return self.number_of(_places(sys._getframe(1)))
        except Exception:  # noqa: BLE001  # the program goes on without a line
            return -1

    def number_of(
        self, places: Iterable[tuple[CodeType, int, int]], *, is_cut: bool = False
    ) -> int:
        """Return the number of a stack; -1 if none of it is shown.

        Args:
            places: code, offset and line of each call, the innermost first.
            is_cut: a sampler may have cut it: without a frame that runs the program it is -1.
        """
        shown: list[tuple[CodeType, int, int]] = []
        for code, at, line in places:
            kind = self._kinds.get(id(code))
            kind = self._kind_of(code) if kind is None else kind
            if kind == _OUTSIDE:
                return self._of_shown(shown)
            if kind == _SHOWN:
                shown.append((code, at, line))
        return -1 if is_cut else self._of_shown(shown)

    def _of_shown(self, frames: list[tuple[CodeType, int, int]]) -> int:
        """Return the number of these codes, with offset and line; write them if they are new."""
        if not frames:
            return -1
        key = tuple(id(code) + at for code, at, _ in frames)
        number = self._shown.get(key)
        if number is None:
            number = self._shown[key] = len(self._shown)
            described = [_described(code, line) for code, _, line in reversed(frames)]
            self._write(number, described)
        return number

    def _kind_of(self, code: CodeType) -> int:
        """Tell which part in stacks a function has that was not met before."""
        self._codes.append(code)  # kept, so that no other code can have its address
        kind = _HIDDEN if _is_hidden(code.co_filename) else _SHOWN
        if code.co_filename == _START:
            kind = _OUTSIDE
        self._kinds[id(code)] = kind
        return kind


def _described(code: CodeType, line: int) -> tuple[str, str, int, int, bool]:
    library = is_library(code.co_filename)
    first = code.co_firstlineno
    return code.co_filename, code.co_qualname, first, line or first, library


def _is_hidden(file: str) -> bool:
    """Tell whether a file is of mpi4py, of what imports and runs modules, or of the recorder."""
    folder, name = os.path.split(file)
    of_mpi4py = getattr(sys.modules.get("mpi4py"), "__file__", None)
    # The whole folder counts: a program can lie in one of this name, too.
    folders = (os.path.dirname(of_mpi4py) + os.sep,) if of_mpi4py else ()
    return name in _LEFT_OUT or folder == _OWN or file.startswith(("<frozen importlib", *folders))


def _places(frame: FrameType | None) -> Iterator[tuple[CodeType, int, int]]:
    """Yield code, offset and line of a frame and of those that called it."""
    while frame is not None:
        yield frame.f_code, frame.f_lasti, frame.f_lineno or 0
        frame = frame.f_back


_START = run_program.__code__.co_filename
"""What lies outside of this module is no part of the program."""
_OWN = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple(
    {
        os.path.dirname(os.path.abspath(os.__file__)) + os.sep,
        os.path.join(sys.prefix, "lib") + os.sep,
    }
)


def is_library(file: str) -> bool:
    """Tell whether a file is one of the standard library or of an installed package."""
    return (
        file.startswith(("<frozen", *_LIBRARIES))
        or f"{os.sep}site-packages{os.sep}" in file
        or f"{os.sep}dist-packages{os.sep}" in file
    )
