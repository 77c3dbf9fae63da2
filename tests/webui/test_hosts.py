"""The pages name the hosts of processes, where a run had several."""

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Trace
from bsplib.webui import services
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


def run(**meta):
    made = Script(4)
    sends = [(1, 2, 1000), (3, 0, 4000)]
    for _ in range(4):
        step(made, (frame("main", 1, 2),), [1e-3, 1e-3, 1e-3, 4e-3], sends=sends)
    return run_of(made, host="driver", **meta)


HOSTS = ["a", "a", "<b>", "<b>"]


def test_the_data_of_a_run_have_the_hosts_of_processes_once():
    assert services.describe_facts(run())["hosts"] is None
    assert services.describe_facts(run(hosts=["a"] * 4))["hosts"] is None
    found = services.describe_facts(run(hosts=HOSTS))["hosts"]
    assert found == {"names": ["a", "<b>"], "of": [0, 0, 1, 1]}


@pytest.fixture(scope="module")
def url(served):
    with served(Trace((run(), run(hosts=HOSTS)))) as url:
        yield url


@pytest.mark.browser
def test_the_pie_the_sentences_the_head_the_matrix_and_the_timeline_name_the_host(tab, url, show):
    show(tab, url)
    expect(tab.locator("#processes .readout")).to_contain_text("process 3 (<b>): 16.0 ms")
    expect(tab.locator("#verdict")).to_contain_text(
        "are lost in main (bcast.py line 2), by process 3 (<b>)"
    )
    expect(tab.locator("header").first).to_contain_text("2 hosts")
    show(tab, url, "view=traffic", fresh=False)
    expect(tab.locator(".traffic dl")).to_contain_text("16.0 kB, process 3 (<b>)")
    tab.locator("canvas.matrix").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight"):
        tab.keyboard.press(key)
    expect(tab.locator(".beside .readout")).to_contain_text("From process 1 (a) to process 2 (<b>)")
    show(tab, url, "view=timeline", fresh=False)
    tab.locator(".timeline canvas.heat[aria-busy=false]").focus()  # before, keys move no cursor
    tab.keyboard.press("ArrowRight")
    expect(tab.locator(".timeline .readout")).to_contain_text("process 0 (a)")
    show(tab, url, "run=0", fresh=False)
    expect(tab.locator("#processes .readout")).to_contain_text("process 3: 16.0 ms")
    expect(tab.locator("header").first).to_contain_text("driver")
