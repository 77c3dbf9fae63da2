"""Colours of the shades on paper: white for nothing, red for the greatest cost."""

from __future__ import annotations

INK, QUIET, LINE = "#1a1e24", "#57606c", "#9aa3af"
"""Of texts, of minor texts, and of outlines and edges."""
_WHITE, _RED = (255, 255, 255), (195, 18, 31)


def fill(shade: float) -> str:
    """Return the colour of a shade from 0 (white) to 1 (red), such as ``#ffffff``."""
    return "#" + "".join(f"{channel:02x}" for channel in _mixed(shade))


def on_fill(shade: float) -> str:
    """Return the colour of a text on a shade: black or white, whichever has more contrast."""
    luminance = _luminance(_mixed(shade))
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21.

    Source: Web Content Accessibility Guidelines 2.2, contrast ratio.
    """
    low, high = sorted(_luminance(_channels(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def _mixed(shade: float) -> tuple[int, ...]:
    share = min(max(shade, 0.0), 1.0)
    return tuple(round(a + share * (b - a)) for a, b in zip(_WHITE, _RED, strict=True))


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))


def _luminance(channels: tuple[int, ...]) -> float:
    """Return the relative luminance of a colour of the sRGB space, from 0 to 1."""
    linear = [
        c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4
        for c in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
