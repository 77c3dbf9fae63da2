"""The view of the source: its data, and what a real browser shows of it."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from bsplib import webui
from bsplib.profiler.callgraph import build
from bsplib.recording.records import Trace
from bsplib.recording.sources import digest
from bsplib.sync_kinds import Kind
from bsplib.webui.source import describe_sources
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

PROGRAM = """\
def relax(bsp):
    bsp.sync()  # <script>alert("x")</script>


def send(bsp):
    bsp.put(0, [1], x)
    bsp.sync()


def main(bsp):
    relax(bsp)
    for _ in range(2):
        send(bsp)
    relax(bsp)
    bsp.sync()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "solve.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trace(file):
    """Line 2 is passed twice, line 7 twice with 800 bytes, line 15 once."""
    made = Script(2)
    within = {
        "relax": (frame("relax", 1, 2, str(file)),),
        "send": (frame("send", 5, 7, str(file)),),
        "main": (),
    }

    def passed(line, function, work=1e-3, **more):
        step(made, (frame("main", 10, line, str(file)), *within[function]), work, **more)

    passed(11, "relax", (5e-3, 1e-3))
    passed(13, "send", sends=[(0, 1, 800)])
    passed(13, "send", sends=[(0, 1, 800)])
    passed(14, "relax")
    passed(15, "main")
    passed(15, "main", 0, kind=Kind.END)
    return Trace((replace(run_of(made), sources={str(file): digest(file.read_bytes())}),))


@pytest.fixture(scope="module")
def url(trace, served):
    with served(trace) as url:
        yield url


def test_every_node_has_an_excerpt_with_the_calls_of_its_lines(trace):
    callgraph = build(trace.runs[0])
    data = describe_sources(callgraph)
    names = [node.name for _, node in callgraph.graph.nodes(data="node")]
    assert len(data["of"]) == len(names)
    main = data["excerpts"][data["of"][names.index("main")]]
    assert (main["first"], len(main["lines"]), main["note"]) == (10, 6, "")
    called = {line: [names[position] for position in found] for line, found in main["calls"]}
    assert called == {11: ["relax"], 13: ["send"], 14: ["relax"]}


def row(tab, line):
    """The cells of a line: its margin, its number and its text."""
    return tab.locator(f".source [data-line='{line}']").locator("td, th").all_inner_texts()


@pytest.mark.browser
def test_the_function_around_the_sync_is_shown_with_the_cost_of_the_line(tab, url, show):
    show(tab, url, "view=source")
    expect(tab.locator(".source h2")).to_contain_text("solve.py")
    current = tab.locator(".source [aria-current]")
    expect(current).to_have_attribute("data-line", "2")
    assert row(tab, 2) == ["2.00 ms", "2", '    bsp.sync()  # <script>alert("x")</script>']
    expect(current.locator("[data-bin='4']")).to_be_visible()
    expect(tab.locator(".source tbody tr")).to_have_count(2)
    expect(tab.locator(".source .tok-keyword").first).to_have_text("def")


@pytest.mark.browser
@pytest.mark.slow
def test_the_first_line_that_costs_is_scrolled_to(tab, served, show, tmp_path):
    path = tmp_path / "long.py"
    path.write_text("def main(bsp):\n" + "    pass\n" * 200 + "    bsp.sync()\n")
    made = Script(2)
    step(made, (frame("main", 1, 202, str(path)),), 1e-3)
    trace = Trace((replace(run_of(made), sources={str(path): digest(path.read_bytes())}),))
    with served(trace) as url:
        for node in build(trace.runs[0]).graph:
            show(tab, url, f"view=source&node={node}")
            expect(tab.locator(".source [data-line='202']")).to_be_in_viewport()


def test_a_file_that_changed_since_the_run_is_not_shown_and_says_so(trace, file):
    file.write_text(f"{PROGRAM}# changed\n", encoding="utf-8")
    try:
        excerpts = describe_sources(build(trace.runs[0]))["excerpts"]
    finally:
        file.write_text(PROGRAM, encoding="utf-8")
    note = f"{file} has changed since the run, so it is not shown."
    assert [(each["note"], each["lines"]) for each in excerpts] == [(note, [])] * len(excerpts)


@pytest.mark.lengthy
def test_a_trace_of_a_stranger_puts_no_file_of_the_reader_into_a_saved_page(trace, file, tmp_path):
    (run,) = trace.runs
    for sources in ({}, {str(file): digest(b"another file")}):
        out = tmp_path / "page.html"
        webui.write_html(Trace((replace(run, sources=sources),)), out)
        assert "alert(" not in out.read_text(encoding="utf-8")
    webui.write_html(Trace((replace(run, sources={}),)), out, sources=file.parent)
    assert "alert(" in out.read_text(encoding="utf-8")
