"""The picture as SVG, read back by a reader of XML."""

from xml.etree import ElementTree

import pytest

from bsplib.profiler import critical
from bsplib.profiler import format as fmt
from bsplib.profiler.drawing import picture
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.profile import RunProfile

SVG = "{http://www.w3.org/2000/svg}"
METRICS = ("loss", "comp-imb", "h-abs", "idle-rel", "comm-weighted", "sync")
"""A metric of each measure."""


def groups(document, kind):
    return {
        group.get("id"): group
        for group in ElementTree.fromstring(document).iter(f"{SVG}g")
        if kind in group.get("class", "").split()
    }


def texts(element):
    return [text.text for text in element.iter(f"{SVG}text")]


def shape(group):
    return next(part for part in group.iter() if part.tag in {f"{SVG}path", f"{SVG}polygon"})


def head(document):
    """The texts above the picture."""
    (graph,) = groups(document, "graph").values()
    return [text.text.strip() for text in graph.findall(f"{SVG}text")]


def lines(document, kind="edge"):
    return [shape(edge) for edge in groups(document, kind).values()]


@pytest.mark.parametrize("metric", METRICS)
def test_every_box_has_the_colour_of_its_shade(broadcast, metric):
    callgraph = broadcast.callgraph
    loss = metric == "loss"
    shades = book_graph(callgraph).shades() if loss else critical.shades(callgraph, metric)
    drawn = groups(broadcast.bytes("svg", metric=metric), "node")
    assert drawn.keys() == shades.keys()
    for name, group in drawn.items():
        assert shape(group).get("fill") == picture.fill(shades[name])
    assert len({shape(group).get("fill") for group in drawn.values()}) > 1


def test_texts_have_room_for_letters_wider_than_those_of_the_layout(broadcast):
    """Browsers without Helvetica show DejaVu Sans, in which numbers are 14% wider."""
    drawn = ElementTree.fromstring(broadcast.bytes("svg"))
    wanted = float(picture._NODE["fontsize"])
    (box, *_) = (group for group in drawn.iter(f"{SVG}g") if group.get("class") == "node function")
    sizes = {float(text.get("font-size")) for text in box.iter(f"{SVG}text")}
    assert max(sizes) * 1.14 < wanted
    width, height = (float(drawn.get(side).removesuffix("pt")) for side in ("width", "height"))
    *_, across, down = map(float, drawn.get("viewBox").split())
    assert width / across == pytest.approx(height / down, rel=0.01)
    assert max(sizes) * width / across == pytest.approx(wanted, rel=0.01)  # as large as before


@pytest.mark.parametrize("metric", METRICS)
def test_a_box_says_name_and_score(broadcast, metric):
    drawn = groups(broadcast.bytes("svg", metric=metric), "node")
    book = book_graph(broadcast.callgraph)
    for name, group in drawn.items():
        label, score = texts(group)
        assert label == fmt.label(broadcast.nodes[name])
        if metric == "loss":
            assert score.startswith(fmt.seconds(book.nodes[name].loss_s))
        elif metric == "sync":
            assert int(score.split()[0]) == broadcast.costs[name].count
        else:
            kind, measure = metric.split("-")
            value = critical.score(broadcast.costs[name], metric)
            empty = broadcast.costs[name][kind].maximum == 0
            text = f"{100 * value:.0f}%" if measure == "rel" else fmt.amount(value, kind)
            assert score.startswith(fmt.amount(0, kind) if empty else text)


def contrast(one, other):
    """The contrast of two colours, from 1 to 21, by WCAG 2.2."""
    colours = (tuple(bytes.fromhex(colour.removeprefix("#"))) for colour in (one, other))
    low, high = sorted(map(picture._luminance, colours))
    return (high + 0.05) / (low + 0.05)


def test_texts_can_be_read_on_every_shade():
    shades = [step / 200 for step in range(201)]
    worst = min(contrast(picture.fill(shade), picture.on_fill(shade)) for shade in shades)
    assert worst >= 4.5
    assert {picture.on_fill(shade) for shade in (0, 1)} == {"#000000", "#ffffff"}


def test_the_width_of_a_line_grows_with_the_cost_that_came_through_it(broadcast):
    document = broadcast.bytes("svg", metric="comp-abs")
    edges = broadcast.callgraph.graph.edges(data="cost")
    cost = {f"{caller}->{callee}": cost.comp.maximum for caller, callee, cost in edges}
    # dot draws the edges in the order in which they are declared: that of their callers.
    drawn = [float(line.get("stroke-width")) for line in lines(document)]
    assert len(drawn) == len(cost)
    whole = broadcast.costs[broadcast.callgraph.root].comp.maximum
    expected = sorted(0.6 + 5.4 * value / whole for value in cost.values())
    assert sorted(drawn) == pytest.approx(expected, abs=0.01)


@pytest.mark.lengthy
def test_the_picture_of_losses_begins_with_the_verdict_and_says_how_it_is_priced(broadcast):
    (first, *_) = book_graph(broadcast.callgraph).verdict().sentences
    texts_above = " ".join(head(broadcast.bytes("svg")))
    assert first.text in texts_above
    assert broadcast.request.profile.book().rates.sentence() in texts_above


def test_a_balanced_program_is_white_and_has_no_critical_path(script):
    made = script(4)
    made.step("main work", 1_000_000)
    document = RunProfile(made.run(), 1).picture("comp-imb").svg
    fills = {shape(group).get("fill") for group in groups(document, "node").values()}
    assert fills == {"#ffffff"}
    assert not any("Thick outlines" in line for line in head(document))


@pytest.mark.lengthy
def test_a_large_graph_is_cut_and_says_what_was_left_out(tree):
    document = tree.bytes("svg", metric="comp-imb")
    drawn = groups(document, "node")
    assert len(drawn) == 80
    scores = {name: critical.score(cost, "comp-imb") for name, cost in tree.costs.items()}
    greatest_left_out = max(scores[name] for name in scores.keys() - drawn.keys())
    chain = set(critical.critical_path(tree.callgraph, "comp-imb"))
    assert chain <= drawn.keys()
    assert all(scores[name] >= greatest_left_out for name in drawn.keys() - chain)
    (note,) = [line for line in head(document) if "left out" in line]
    assert note.startswith("220 of 300 nodes are left out")
    assert note.endswith(f"none of them has more than {fmt.seconds(greatest_left_out)}.")


@pytest.mark.lengthy
def test_a_tangle_is_cut_until_its_lines_can_be_followed(tangle):
    document = tangle.bytes("svg")
    assert 8 <= len(groups(document, "node")) < 80
    assert len(lines(document)) <= 200 + 2 * len(groups(document, "node"))
    assert any("nodes are left out" in line for line in head(document))


def test_hostile_names_are_texts_and_nothing_else(hostile):
    document = hostile.bytes("svg")
    root = ElementTree.fromstring(document)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "g", "title", "path", "polygon", "text"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in attributes if name.startswith("on") or "href" in name]
    for name, group in groups(document, "node").items():
        assert group.find(f"{SVG}title").text.startswith(fmt.label(hostile.nodes[name]))
        start, dots, end = texts(group)[0].partition("…")
        assert fmt.label(hostile.nodes[name]).startswith(start)
        assert not dots or fmt.label(hostile.nodes[name]).endswith(end)
    assert head(document)[0] == "</script><script>alert('program')</script>"
