r"""Text of unknown origin, made safe to show.

A terminal obeys escape sequences: the name of a function, a Machine or a file in a trace
of somebody else could move the cursor or rename the window.
"""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Text of unknown origin on one line: what does not print is escaped (``\x1b``, ``\n``).

    Markup is not touched; whoever shows the text escapes that for the place it goes to.
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def visible_lines(text: str) -> str:
    """Text of several lines, each of them as :func:`visible` makes it."""
    return "\n".join(map(visible, text.split("\n")))


def text_of(error: BaseException) -> str:
    """Return the text of an error of unknown origin, whatever its ``__str__`` does."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # anything may go wrong in a foreign __str__
        return f"<{type(error).__name__} whose __str__ raises>"
