"""Parts of the account, and neighbouring shades, differ for readers who do not see red or green."""

import math
import re
from itertools import combinations, pairwise

import pytest

from bsplib.profiler.account import PARTS
from bsplib.webui.page import STATIC

CSS = (STATIC / "css" / "base.css").read_text(encoding="utf-8")
VISIONS = {
    "trichromacy": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
"""What is seen of linear red, green and blue. Source: Machado, Oliveira, Fernandes 2009."""
XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)
LEAST = 10  # CIE 1976: a difference of 2 is just seen side by side


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def linear(colour):
    """Return red, green and blue of a colour in proportion to their light."""
    levels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in levels]


def luminance(colour):
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    return times(XYZ, linear(colour))[1]


def lab(colour, vision):
    """Return lightness, green to red, and blue to yellow, as seen by a vision."""
    seen = [min(1.0, max(0.0, value)) for value in times(VISIONS[vision], linear(colour))]
    parts = [value / white for value, white in zip(times(XYZ, seen), WHITE, strict=True)]
    x, y, z = (v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def colours(kind, scheme, palette="red"):
    """Return the colours of a kind (part or bin) in the light or the dark scheme, by name."""
    root, safe = re.findall(r'^:root(?:\[data-palette="safe"\])? \{(.*?)^\}', CSS, re.DOTALL | re.M)
    pairs = rf"--{kind}-(\w+): light-dark\((#\w{{6}}), (#\w{{6}})\)"
    found = re.findall(pairs, root) + (re.findall(pairs, safe) if palette == "safe" else [])
    return {name: (light, dark)[scheme == "dark"] for name, light, dark in found}


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_parts_of_the_account_differ_for_every_eye(scheme, vision):
    known = colours("part", scheme)
    assert set(known) == set(PARTS)
    seen = [lab(known[part], vision) for part in PARTS]
    seen.append(lab({"light": "#f7f8f9", "dark": "#14161a"}[scheme], vision))  # the sheet itself
    # a part that takes no time is not drawn, so any two may stand side by side
    assert min(math.dist(one, other) for one, other in combinations(seen, 2)) >= LEAST


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("palette", ["red", "safe"])
def test_neighbouring_shades_differ_for_every_eye(palette, scheme, vision):
    known = colours("bin", scheme, palette)
    seen = [lab(known[str(shade)], vision) for shade in range(5)]
    assert min(math.dist(one, other) for one, other in pairwise(seen)) >= LEAST


def text_on(shade, scheme, palette):
    """Return the colour of the text on a shade: the last rule that is for it counts."""
    rules = re.findall(
        r'^(\[data-palette="safe"\] )?\[data-bin(?:="(\d)")?\] \{.*--on-bin: ([^;]*);', CSS, re.M
    )
    *_, found = [
        re.findall(r"#\w{6}", value)
        for safe, only, value in rules
        if only in ("", str(shade)) and (not safe or palette == "safe")
    ]
    return found[-1 if scheme == "dark" else 0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("palette", ["red", "safe"])
def test_text_can_be_read_on_every_shade_and_shades_rise(palette, scheme):
    known = colours("bin", scheme, palette)
    fills = [luminance(known[str(shade)]) for shade in range(5)]
    for shade, fill in enumerate(fills):
        text = luminance(text_on(shade, scheme, palette))
        assert (max(fill, text) + 0.05) / (min(fill, text) + 0.05) >= 4.5  # WCAG 2, level AA
    if palette == "safe" or scheme == "light":
        assert fills == sorted(fills, reverse=scheme == "light")
