"""The page in a real browser: the system's Chromium, driven by playwright."""

import re
import shutil
import struct
import threading
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect, sync_playwright
from werkzeug.serving import make_server

import webui
from bsplib.recording.records import Trace
from profiler import format as fmt
from profiler.callgraph import build
from webui import services

pytestmark = pytest.mark.browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium():
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"No Chromium on PATH (as {', '.join(BROWSERS)}): install package chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium):
    """A tab in which nothing may be reported, asked or loaded from elsewhere."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, offline=False)
    tab = context.new_page()
    troubles = []
    tab.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    tab.on(
        "dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss())
    )
    tab.on("request", lambda request: troubles.extend(elsewhere(request.url)))
    yield tab
    context.close()
    assert troubles == []


def elsewhere(url):
    return [] if re.match(r"http://127\.0\.0\.1:|file://|data:", url) else [f"loads {url}"]


@contextmanager
def served(trace):
    server = make_server("127.0.0.1", 0, webui.create_app(trace), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def broadcast_url(broadcast_trace):
    with served(broadcast_trace) as url:
        yield url


def show(tab, url, state=""):
    tab.goto("about:blank")  # else a new hash alone would not load the page anew
    tab.goto(f"{url}#{state}" if state else url)
    expect(tab.locator("g.node").first).to_be_attached()


def ids(trace, run=0):
    """Node ids by name."""
    return {node.name: name for name, node in build(trace.runs[run]).graph.nodes(data="node")}


def fill(tab, node):
    return tab.locator(f"#{node} > path, #{node} > polygon").evaluate(
        "shape => getComputedStyle(shape).fill"
    )


def choose_path(tab, title):
    tab.get_by_role("radio", name=title, exact=True).check(force=True)


def bars(tab):
    """What the panel says of each process: by pid its value and share."""
    rows = tab.locator(".bars li").evaluate_all(
        "rows => rows.map(row => ['.pid', '.value', '.share'].map("
        "part => row.querySelector(part).textContent))"
    )
    return {int(pid): (value, share) for pid, value, share in rows}


def test_every_node_and_edge_of_the_graph_is_on_the_page(tab, broadcast_url, broadcast_trace):
    graph = build(broadcast_trace.runs[0]).graph
    show(tab, broadcast_url)
    expect(tab.locator("g.node")).to_have_count(len(graph))
    expect(tab.locator("g.edge")).to_have_count(graph.number_of_edges())
    expect(tab.locator("#program")).to_have_text("bcast.py")


def test_another_path_recolours_the_nodes_in_place(tab, broadcast_url, broadcast_trace):
    node = ids(broadcast_trace)["bcast.py line 41"]
    place = tab.locator(f"#{node}")
    show(tab, broadcast_url, "path=h-imb")
    white, where = fill(tab, node), place.bounding_box()
    choose_path(tab, "computation, absolute")
    assert fill(tab, node) != white
    assert place.bounding_box()["x"] == where["x"]
    choose_path(tab, "h-relation, absolute imbalance")
    assert fill(tab, node) == white


def test_the_darkest_node_is_red_and_a_balanced_one_white(tab, broadcast_url, broadcast_trace):
    show(tab, broadcast_url, "path=h-imb")
    red, green, blue, _ = painted(tab, fill(tab, ids(broadcast_trace)["main"]))
    assert red > 150
    assert max(green, blue) < 50
    assert painted(tab, fill(tab, ids(broadcast_trace)["bcast.py line 41"]))[:3] == [255] * 3


def test_the_critical_path_is_outlined_and_spelt_out(tab, broadcast_url, broadcast_trace):
    names = ids(broadcast_trace)
    chain = ["main", "bar", "bcast_onestage", "bcast.py line 18"]
    show(tab, broadcast_url, "path=h-imb")
    outlined = tab.locator("g.node.critical").evaluate_all("nodes => nodes.map(n => n.id)")
    assert set(outlined) == {names[name] for name in chain}
    expect(tab.locator("g.edge.critical")).to_have_count(len(chain) - 1)
    widths = tab.locator("g.node > path, g.node > polygon").evaluate_all(
        "shapes => shapes.map(s => [s.parentNode.matches('.critical'),"
        " parseFloat(getComputedStyle(s).strokeWidth)])"
    )
    assert min(w for critical, w in widths if critical) > max(w for c, w in widths if not c)
    steps = tab.locator("#chain button").all_text_contents()
    assert [step.rsplit(" ", 2)[0] for step in steps] == chain


@pytest.mark.parametrize("name", ["main", "bcast_twostage", "bcast.py line 34"])
def test_a_click_on_a_node_shows_its_numbers(tab, broadcast_url, broadcast_trace, name):
    node = ids(broadcast_trace)[name]
    cost = build(broadcast_trace.runs[0]).graph.nodes[node]["cost"]
    show(tab, broadcast_url, "path=h-imb")
    tab.locator(f"#{node}").click()
    panel = tab.locator("#detail")
    expect(panel.locator("h2")).to_have_text(name)
    expect(panel).to_contain_text(f"{cost.count} supersteps")
    rows = panel.locator(".numbers tbody tr").all_text_contents()
    for metric, row in zip(("comp", "comm", "idle", "h"), rows, strict=True):
        summary = cost[metric]
        average, minimum = summary.percentages()
        for part in (summary.maximum, summary.average, summary.minimum):
            assert fmt.amount(part, metric) in row
        assert f"{average}%" in row
        assert f"{minimum}%" in row


def test_the_pie_has_a_slice_for_each_process_with_its_value(tab, broadcast_url, broadcast_trace):
    node = ids(broadcast_trace)["bcast_onestage"]
    pie = build(broadcast_trace.runs[0]).graph.nodes[node]["cost"].h.pie
    show(tab, broadcast_url, f"path=h-imb&node={node}")
    titles = tab.locator(".pie .slice title").evaluate_all("ts => ts.map(t => t.textContent)")
    expected = [
        f"process {pid}: {fmt.size(value)}, {100 * value / sum(pie):.1f}%"
        for pid, value in enumerate(pie)
    ]
    assert titles == expected
    assert bars(tab)[0] == ("6.00 MB", "50.0%")
    assert len(bars(tab)) == 16
    expect(tab.locator(".pie .greatest")).to_have_attribute("data-pid", "0")


def test_the_metric_of_the_pie_can_be_chosen_in_the_table(tab, broadcast_url, broadcast_trace):
    node = ids(broadcast_trace)["bcast_onestage"]
    pie = build(broadcast_trace.runs[0]).graph.nodes[node]["cost"].comp.pie
    show(tab, broadcast_url, f"path=h-imb&node={node}")
    tab.get_by_role("radio", name="computation", exact=True).check(force=True)
    assert {pid: value for pid, (value, _) in bars(tab).items()} == {
        pid: fmt.seconds(value) for pid, value in enumerate(pie)
    }
    values = list(map(pie.__getitem__, bars(tab)))
    assert values == sorted(values, reverse=True)


def test_the_callers_are_listed_with_their_parts(tab, broadcast_url, broadcast_trace):
    node = ids(broadcast_trace)["bcast_onestage"]
    show(tab, broadcast_url, f"path=h-imb&node={node}")
    callers = tab.get_by_role("region", name="Callers").locator("li")
    expect(callers).to_have_count(2)
    expect(callers.first).to_contain_text("5 supersteps3.00 MB (12% | 7%)")
    callers.filter(has_text="foo").get_by_role("button").click()
    expect(tab.locator("#detail h2")).to_have_text("foo")


def test_a_click_on_an_edge_shows_the_part_of_that_caller(tab, broadcast_url, broadcast_trace):
    names = ids(broadcast_trace)
    show(tab, broadcast_url)
    edges = services.describe_run(broadcast_trace.runs[0])["edges"]
    (edge,) = [
        name
        for name, ends in edges.items()
        if (ends["caller"], ends["callee"]) == (names["foo"], names["bcast_onestage"])
    ]
    line = tab.locator(f"#{edge}")
    assert (
        "bcast_onestage, through foo:\n5 supersteps\ncomp  195 ms"
        in line.locator("title").text_content()
    )
    line.locator(".grip").click(force=True)
    expect(tab.locator("#detail h2")).to_have_text("bcast_onestage")
    expect(tab.locator(".links .lit")).to_contain_text("foo")


def test_the_graph_can_be_used_by_keyboard_alone(tab, broadcast_url, broadcast_trace):
    names = ids(broadcast_trace)
    show(tab, broadcast_url, "path=h-imb")
    tab.locator("#search").focus()
    tab.keyboard.press("Tab")
    for _ in range(4):  # the buttons of the chain come before the graph
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == names["main"]
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.id") == names["bar"]
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate("document.activeElement.id") == names["foo"]
    tab.keyboard.press("Enter")
    expect(tab.locator("#detail h2")).to_have_text("foo")
    expect(tab.locator(f"#{names['foo']}")).to_have_attribute("aria-pressed", "true")


def test_the_paths_can_be_chosen_by_keyboard(tab, broadcast_url):
    show(tab, broadcast_url, "path=comp-abs")
    tab.locator("#paths input:checked").focus()
    tab.keyboard.press("ArrowRight")
    expect(tab.locator("#scale-text")).to_contain_text("computation, absolute imbalance")
    assert "path=comp-imb" in tab.url


def test_a_view_can_be_shared_by_its_address(tab, broadcast_url, broadcast_trace):
    names = ids(broadcast_trace)
    show(tab, broadcast_url)
    choose_path(tab, "idle time, relative imbalance")
    tab.locator(f"#{names['bar']}").click()
    address = tab.url
    tab.goto("about:blank")
    tab.goto(address)
    expect(tab.locator("#detail h2")).to_have_text("bar")
    expect(tab.locator("#scale-text")).to_contain_text("idle time, relative imbalance")


def test_a_changed_address_keeps_the_part_of_the_graph_in_view(tab, broadcast_url):
    show(tab, broadcast_url, "path=h-imb")
    tab.get_by_role("button", name="Zoom in").click()
    where = transform(tab)
    tab.evaluate("location.hash = 'run=0&path=sync'")
    expect(tab.locator("#scale-text")).to_contain_text("number of supersteps")
    assert transform(tab) == where


def test_a_node_reached_by_an_arrow_key_comes_into_view(tab, broadcast_url, broadcast_trace):
    names = ids(broadcast_trace)
    show(tab, broadcast_url)
    for _ in range(4):
        tab.get_by_role("button", name="Zoom in").click()
    tab.locator(f"#{names['main']}").focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    reached = tab.evaluate("document.activeElement.id")
    box = tab.locator(f"#{reached}").bounding_box()
    canvas = tab.locator("#graph").bounding_box()
    assert canvas["x"] < box["x"] + box["width"] <= canvas["x"] + canvas["width"]


def test_a_balanced_pie_points_at_no_process(tab, broadcast_url, broadcast_trace):
    show(tab, broadcast_url, f"path=h-imb&node={ids(broadcast_trace)['bcast.py line 41']}")
    expect(tab.locator("#detail")).to_contain_text("375 kBon each of 16 processes")
    expect(tab.locator("#detail .greatest")).to_have_count(0)


@pytest.mark.parametrize(
    "state",
    ["run=9", "path=nonsense", "node=n99", "run=x&path=&node=", "path=__proto__&node=toString"],
)
def test_an_address_that_names_nothing_shows_the_default(tab, broadcast_url, state):
    show(tab, broadcast_url, state)
    expect(tab.locator("#detail h2")).to_have_text("bcast.py line 18")


def transform(tab):
    return tab.locator("#graph > g").get_attribute("transform")


def test_the_graph_can_be_dragged_zoomed_and_shown_whole(tab, broadcast_url):
    show(tab, broadcast_url)
    whole = transform(tab)
    tab.mouse.move(600, 700)
    tab.mouse.wheel(0, -400)
    expect(tab.locator("#graph > g")).not_to_have_attribute("transform", whole)
    zoomed = transform(tab)
    tab.mouse.down()
    tab.mouse.move(650, 720, steps=3)
    tab.mouse.up()
    assert transform(tab) != zoomed
    tab.get_by_role("button", name="Show all").click()
    assert transform(tab) == whole
    tab.keyboard.press("+")
    assert transform(tab) != whole


def test_a_drag_that_ends_on_a_node_selects_nothing(tab, broadcast_url, broadcast_trace):
    show(tab, broadcast_url)
    box = tab.locator(f"#{ids(broadcast_trace)['foo']}").bounding_box()
    tab.mouse.move(box["x"] + 20, box["y"] + 20)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 60, box["y"] + 60, steps=4)
    tab.mouse.up()
    expect(tab.locator("#detail h2")).to_have_text("bcast.py line 18")


def test_search_finds_nodes_by_name(tab, broadcast_url):
    show(tab, broadcast_url)
    tab.keyboard.press("/")
    tab.keyboard.type("TWOstage")
    expect(tab.locator("g.node.match")).to_have_count(1)
    expect(tab.locator("#matches")).to_contain_text("1 of 9 nodes")
    tab.keyboard.press("Enter")
    expect(tab.locator("#detail h2")).to_have_text("bcast_twostage")


def test_a_screenshot_is_a_picture_of_the_page(tab, broadcast_url, tmp_path):
    show(tab, broadcast_url)
    out = tmp_path / "page.png"
    tab.screenshot(path=out)
    png = out.read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (1280, 800)
    assert len(png) > 30_000  # an empty page of this size has about 4000 bytes


def test_hostile_names_are_shown_as_text_and_run_nothing(tab, hostile_trace):
    graph = build(hostile_trace.runs[0]).graph
    with served(hostile_trace) as url:
        show(tab, url)
        for name, node in graph.nodes(data="node"):
            place = tab.locator(f"#{name}")
            place.dispatch_event("click")
            expect(tab.locator("#detail h2")).to_have_text(fmt.label(node))
            assert place.locator("title").text_content() == fmt.label(node)
        tab.locator("#search").fill("<script>")
        expect(tab.locator("g.node.match")).not_to_have_count(0)
        expect(tab.locator("main script, aside script, main img, aside img")).to_have_count(0)
        expect(tab.locator("#program")).to_contain_text("<script>alert('program')</script>")


def test_the_saved_page_works_without_server_and_network(tab, several_runs_trace, tmp_path):
    out = tmp_path / "profile.html"
    webui.write_html(several_runs_trace, out)
    tab.context.set_offline(True)
    tab.context.route(re.compile("^https?:"), lambda route: route.abort())
    show(tab, out.as_uri(), "path=h-imb")
    names = ids(several_runs_trace)
    white = fill(tab, names["bcast.py line 41"])
    choose_path(tab, "computation, absolute")
    assert fill(tab, names["bcast.py line 41"]) != white
    tab.locator(f"#{names['foo']}").click()
    expect(tab.locator("#detail h2")).to_have_text("foo")
    expect(tab.locator(".pie .slice")).to_have_count(4)
    tab.locator("#runs").select_option(index=2)
    expect(tab.locator("#heading")).to_contain_text("8 processes")


def test_several_runs_can_be_switched(tab, several_runs_trace):
    with served(several_runs_trace) as url:
        show(tab, url, "path=comp-abs")
        tab.locator(f"#{ids(several_runs_trace)['bar']}").click()
        tab.locator("#runs").select_option(index=2)
        expect(tab.locator("#heading")).to_contain_text("8 processes")
        expect(tab.locator("#error")).to_contain_text("AbortError: it was enough.")
        expect(tab.locator(".bars li")).to_have_count(8)
        assert "run=2" in tab.url
        assert "node=" not in tab.url
        tab.locator("#runs").select_option(index=0)
        expect(tab.locator("#heading")).to_contain_text("4 processes")
        expect(tab.locator("#error")).to_be_hidden()


def test_one_process_is_a_whole_pie_and_the_first_path_is_one_that_scores(tab, several_runs_trace):
    with served(several_runs_trace) as url:
        show(tab, url, "run=1")
        expect(tab.locator("#scale-text")).to_contain_text("computation, absolute")
        expect(tab.locator(".pie .slice")).to_have_count(1)
        assert bars(tab)[0][1] == "100.0%"
        expect(tab.locator("#detail")).to_contain_text("on the only process")
        choose_path(tab, "h-relation, absolute")
        expect(tab.locator("#chain")).to_contain_text("nothing is critical")
        expect(tab.locator(".pie .empty")).to_have_count(1)


def test_many_processes_have_a_slice_and_a_bar_each(tab, tree_run):
    with served(Trace((tree_run(4, nprocs=256),))) as url:
        show(tab, url, "path=comp-abs")
        expect(tab.locator(".pie .slice")).to_have_count(256)
        expect(tab.locator(".bars li")).to_have_count(256)


def test_a_large_graph_opens_where_it_can_be_read_and_shows_names_from_afar(tab, tree_run):
    with served(Trace((tree_run(150),))) as url:
        show(tab, url)
        end = tab.locator("#chain button").last.text_content().rsplit(" ", 2)[0]
        expect(tab.locator("#detail h2")).to_have_text(end)
        lines = tab.locator(".node text:nth-of-type(2)").first
        expect(lines).to_be_visible()
        tab.get_by_role("button", name="Show all").click()
        expect(lines).to_be_hidden()
        expect(tab.locator(".node .far").first).to_be_visible()


def test_a_trace_without_runs_says_so(tab):
    with served(Trace(())) as url:
        tab.goto(url)
        expect(tab.get_by_role("status")).to_have_text("The trace has no runs.")


def painted(tab, colour):
    """Red, green, blue and alpha of a colour that may be written in any colour space."""
    return tab.evaluate(
        """colour => {
          const context = document.createElement("canvas").getContext("2d");
          context.fillStyle = colour;
          context.fillRect(0, 0, 1, 1);
          return Array.from(context.getImageData(0, 0, 1, 1).data);
        }""",
        colour,
    )


def luminance(rgba):
    """Relative luminance, as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
              for c in (part / 255 for part in rgba[:3])]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_shade(tab, tree_run, scheme, monkeypatch):
    trace = Trace((tree_run(60),))
    run = services.describe_run(trace.runs[0])
    steps = len(run["nodes"]) - 1
    shades = {name: number / steps for number, name in enumerate(run["nodes"])}
    run["paths"]["sync"]["shades"] = shades
    monkeypatch.setattr(services, "describe_run", lambda _, **__: run)
    tab.emulate_media(color_scheme=scheme)
    with served(trace) as url:
        show(tab, url, "path=sync")
        for node, shade in shades.items():
            colour = tab.locator(f"#{node} text").first.evaluate("t => getComputedStyle(t).fill")
            light, dark = sorted(
                (luminance(painted(tab, c)) for c in (fill(tab, node), colour)), reverse=True
            )
            assert (light + 0.05) / (dark + 0.05) >= 4.5, shade  # WCAG 2, level AA
