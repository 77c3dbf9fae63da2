"""The picture as PNG and PDF, read back by readers of these formats."""

import io
import os
import re
from xml.etree import ElementTree

import pypdf
import pytest
from PIL import Image

from bsplib.profiler import format as fmt
from bsplib.profiler.drawing import graphviz, picture
from bsplib.profiler.drawing.graphviz import LayoutError
from bsplib.profiler.drawing.view import view_of
from bsplib.profiler.graph_book import book_graph
from tests.profiler.export.conftest import Exported


@pytest.fixture(scope="module")
def image(broadcast):
    return Image.open(io.BytesIO(broadcast.bytes("png", metric="comp-imb")))


@pytest.fixture(scope="module")
def page(broadcast, dot_of_graphviz):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", dot_of_graphviz, prepend=os.pathsep)
        broadcast.bytes("pdf", metric="comp-imb")
    (only,) = pypdf.PdfReader(io.BytesIO(broadcast.bytes("pdf", metric="comp-imb"))).pages
    return only


def size_of_svg(exported):
    """The size of the layout in points; an SVG shows it larger, with smaller letters."""
    root = ElementTree.fromstring(exported.bytes("svg", metric="comp-imb"))
    return [float(side) for side in root.get("viewBox").split()[2:]]


def test_the_png_has_144_pixels_an_inch(broadcast, image):
    assert image.format == "PNG"
    assert list(image.size) == pytest.approx(
        [2 * points for points in size_of_svg(broadcast)], 0.02
    )


def test_the_png_has_the_colours_of_the_shades(broadcast, image):
    pixels = image.convert("RGB").getcolors(maxcolors=2**24)
    found = {"#{:02x}{:02x}{:02x}".format(*colour) for _, colour in pixels}
    shades = view_of("comp-imb", book_graph(broadcast.callgraph)).shades
    assert len(set(shades.values())) > 5
    assert {picture.fill(shade) for shade in shades.values()} <= found


@pytest.mark.lengthy
def test_the_pdf_is_one_page_of_the_size_of_the_picture_with_margins_of_half_an_inch(
    broadcast, page, dot_of_graphviz, monkeypatch
):
    size = [float(page.mediabox.width), float(page.mediabox.height)]
    monkeypatch.setenv("PATH", dot_of_graphviz, prepend=os.pathsep)
    of_svg = size_of_svg(
        Exported(broadcast.run)
    )  # by the same dot: another one measures texts anew
    assert size == pytest.approx([points + 72 for points in of_svg], abs=2)


def test_the_texts_of_the_pdf_can_be_searched(broadcast, page):
    text = re.sub(r"\s+", " ", page.extract_text())
    for name, node in broadcast.nodes.items():
        assert fmt.label(node) in text
        maximum = broadcast.costs[name].comp.maximum
        assert fmt.seconds(maximum) in text
    assert "bcast.py --size 40000" in text


def test_a_picture_that_takes_too_long_says_how_to_draw_less(broadcast, monkeypatch):
    monkeypatch.setattr(graphviz, "LAYOUT_SECONDS", 0.001)
    with pytest.raises(LayoutError) as caught:
        broadcast.bytes("png", top=5)
    assert str(caught.value) == (
        "the picture has 5 nodes and 5 edges, and dot did not finish within 0.001 s: use --top "
        "to draw fewer nodes"
    )
