r"""Text of unknown origin in a form that is safe to show.

A terminal executes escape sequences. A name in an untrusted trace, of a function, a Machine
or a file, could otherwise move the cursor or rename the window.
"""

from __future__ import annotations

import shlex


def visible(text: str) -> str:
    r"""Return a text on one line, with its unprintable characters escaped (``\x1b``, ``\n``).

    Markup is not escaped: the caller has to do that for the format of its output.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def as_command(*words: object) -> str:
    """Return a command that a user can copy into a shell: names with spaces are in quotes."""
    return visible(shlex.join(map(str, words)))


def visible_lines(text: str) -> str:
    """Return a text of several lines, with :func:`visible` applied to each line."""
    return "\n".join(map(visible, text.split("\n")))


def text_of(error: BaseException) -> str:
    """Return the text of an error of unknown origin, whatever its ``__str__`` does."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # anything may go wrong in a foreign __str__
        return f"<{type(error).__name__} whose __str__ raises>"
