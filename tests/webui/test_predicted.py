"""The page of a learnt program in a real browser: what it asks the server, and what is seen."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import asdict

import numpy as np
import pytest
from playwright.sync_api import expect

from bsplib import webui
from bsplib.machine import Machine
from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import Node
from bsplib.profiler.predict import predict_run, scaling, write_model
from bsplib.profiler.predict.observed import Observation, ObservedProgram, Quantities
from bsplib.profiler.predict.program import learn_observed
from bsplib.profiler.predict.show import band
from bsplib.webui.opened_runs import AddressError
from bsplib.webui.predicted import describe_predictions
from tests.commands import run_bsp
from tests.webui.conftest import served_app

HERE = Machine("here", "made up", g=1e-9, l=1e-5, relative_speed=1.0)
THERE = Machine("there", "made up", g=5e-9, l=1e-4, h="sum", relative_speed=0.5)
SIZES, PROCESSES = (4096.0, 16384.0, 65536.0), (2.0, 4.0, 8.0, 16.0)


def name(number):
    return f"n{number:016x}"


NODES = {
    name(0): Node(name(0), "function", "main", "/home/user/sort.py", 1, ""),
    name(1): Node(name(1), "function", "<exchange>", "/home/user/sort.py", 10, ""),
    name(2): Node(name(2), "cost_centre", "sort.py line 14", "/home/user/sort.py", 14, "sync"),
    name(3): Node(name(3), "cost_centre", "sort.py line 9", "/home/user/sort.py", 9, "sync"),
}
CHAINS = ((name(0), name(1), name(2)), (name(0), name(3)))


def seen(n, p):
    """What a run has: an exchange whose time falls with p, and one whose time grows with it."""
    h = 8 * n * (p - 1) / p
    noise = np.exp(np.random.default_rng(int(n + p)).normal(0, 0.03, 2))
    sorted_s, collected_s = np.array([2e-9 * (n / p) * np.log2(n / p), 1e-8 * p + 1e-6]) * noise
    first = Quantities(2 * np.log2(p) + 1, h, 2 * h, float(sorted_s), 1.0, h * p)
    second = Quantities(1.0, 8 * p * (p - 1), 8 * p * (p - 1), float(collected_s), 1.0, 8.0 * p * p)
    return Observation({"n": n, "p": p}, dict(zip(CHAINS, (first, second), strict=True)), 1.0)


@functools.cache
def made(**more):
    """Return a model of two cost centres."""
    observations = [seen(n, p) for n in SIZES for p in PROCESSES]
    program = ObservedProgram(NODES, CHAINS, frozenset(), frozenset(), observations)
    meta = {"program": "sort.py", "machine": asdict(HERE), "backend": "sim", **more}
    return learn_observed(program, len(observations), meta)


def served_model(shown):
    return served_app(webui.create_model_app(shown))


@pytest.fixture(scope="module")
def url():
    with served_model(webui.ShownModel(made())) as url:
        yield url


def said(tab):
    """Sentences of the prediction."""
    expect(tab.locator(".stage[data-nodes]")).to_be_attached()
    return tab.locator("#verdict li").all_text_contents()


def says(tab, beginning):
    """Wait for the first sentence of the prediction."""
    expect(tab.locator("#verdict li").first).to_have_text(re.compile(f"^{re.escape(beginning)}"))


@pytest.mark.lengthy
@pytest.mark.parametrize(("n", "p"), [(4096, 1), (65536, 32), (65536, 1000), (2**30, 1024)])
@pytest.mark.parametrize("machine", [None, THERE], ids=["own", "there"])
def test_the_server_answers_with_what_python_predicts(n, p, machine):
    shown = webui.ShownModel(made(), machine)
    query = {"point": f"n:{n},p:{p}"} | ({"machine": "given"} if machine else {})
    found = describe_predictions(shown, query)
    expected = predict_run(shown.model, p, {"n": n}, machine)
    assert (found["total"], found["band"]) == (expected.total.total_s, band(expected))
    times, nodes = found["times"], found["tables"]["nodes"]
    assert times["nodes"]["time"] == pytest.approx([expected.nodes[node].total_s for node in NODES])
    assert [row[1] for row in nodes[0][:3]] == pytest.approx(list(expected.total))
    assert found["tables"]["edges"][0][3][1] == pytest.approx(expected.nodes[name(2)].total_s)
    shown = [number for number, _ in times["paths"]["time"]]
    assert list(NODES)[shown[-1]] == expected.worst
    assert found["curves"]["roll_off"] == scaling(expected).roll_off


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize(
    "query",
    [
        *({"point": "m:3"}, {"point": "n:x"}, {"point": "n:1e999"}, {"point": "p:0"}),
        *({"machine": "../etc"}, {"g": "x"}, {"l": "-1"}, {"speed": "nan"}),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(query):
    with pytest.raises(AddressError):
        describe_predictions(webui.ShownModel(made()), query)


@pytest.mark.lengthy
def test_g_and_l_that_the_reader_sets_take_the_place_of_those_of_the_machine():
    shown = webui.ShownModel(made())
    point = {"point": "n:65536,p:8"}
    own, set_ = (describe_predictions(shown, query) for query in (point, {**point, "l": "1e-3"}))
    steps = sum(each.at({"n": 65536, "p": 8})["supersteps"].value for each in shown.model.chains)
    more = set_["total"] - own["total"]
    assert more == pytest.approx(steps * (1e-3 - HERE.l))


def sentences(shown, **query):
    return [each["text"] for each in describe_predictions(shown, query)["verdict"]["sentences"]]


AT_FIRST = "Believed at n = 65536 on 1024 processes of here: "


@pytest.mark.lengthy
def test_the_sentences_are_those_that_bsp_predict_prints():
    prediction = predict_run(made(), 64, {"n": 65536}, THERE)
    printed = " ".join(str(prediction).split())
    shown = webui.ShownModel(made(), THERE, [{"n": 65536.0, "p": 64.0}])
    told = [each for each in sentences(shown) if "hurts first" not in each]
    assert len(told) > 2
    assert [each for each in told if each not in printed] == []


@pytest.mark.browser
def test_a_slider_predicts_anew_by_its_keys_back_returns_and_values_can_be_typed(tab, url, show):
    show(tab, url)
    assert said(tab) == sentences(webui.ShownModel(made()))
    worst = tab.locator(".node[data-bin='4'] .title").all_text_contents()
    assert "line 9" in worst
    assert "sort.py line 14" not in worst
    expect(tab.locator("#detail h2")).to_have_text("line 9")
    expect(tab.locator("#laws dd")).to_have_count(3)
    expect(tab.locator(".variable.beyond")).to_have_count(1)
    slider = tab.get_by_role("slider", name="p, processes")
    slider.focus()
    tab.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "2048")
    says(tab, "Believed at n = 65536 on 2048 processes of here: ")
    assert "point=n:65536,p:2048" in tab.evaluate("decodeURIComponent(location.hash)")
    tab.go_back()
    expect(slider).to_have_attribute("aria-valuetext", "1024")
    field = tab.get_by_label("n: value")
    for text, value in (("2^30", "2^30"), ("1e6", "1000000"), ("nothing", "1000000")):
        field.fill(text)
        field.press("Enter")
        field.blur()
        expect(field).to_have_value(value)
    tab.get_by_label("p: value").fill("1000")
    tab.get_by_label("p: value").press("Enter")
    says(tab, "Believed at n = 1000000 on 1000 processes of here: ")


@pytest.mark.browser
def test_another_machine_prices_the_same_laws(tab, show):
    with served_model(webui.ShownModel(made(), THERE, [{"n": 2.0**20, "p": 64.0}])) as url:
        show(tab, url)
        expected = predict_run(made(), 64, {"n": 2**20}, THERE)
        time = fmt.seconds(expected.total.total_s)
        says(tab, f"Believed at n = 2^20 on 64 processes of there: {time}, ")
        tab.keyboard.press("m")
        tab.get_by_label("Machine", exact=True).get_by_role("combobox").select_option("")
        expected = predict_run(made(), 64, {"n": 2**20})
        time = fmt.seconds(expected.total.total_s)
        says(tab, f"Believed at n = 2^20 on 64 processes of here: {time}, ")
        tab.reload()
        says(tab, f"Believed at n = 2^20 on 64 processes of here: {time}, ")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_page_works_offline_in_any_window(open_tab, tmp_path, scheme, url, show):
    path = tmp_path / "page.html"
    points = [{}, {"n": 2.0**30, "p": 64.0}]
    webui.write_model_html(webui.ShownModel(made(), points=points), path)
    page = open_tab(width=800, height=900, color_scheme=scheme)
    page.goto(path.as_uri())
    sentences = said(page)
    assert sentences[0].startswith(AT_FIRST)
    expect(page.locator(".node .title")).to_have_count(4)
    assert "<exchange>" in page.locator(".node .title").all_text_contents()
    expect(page.locator("#sliders input:enabled")).to_have_count(0)
    expect(page.locator("#sliders")).to_contain_text(
        "saved to a file at the points that were named: bsp view --fit"
    )
    page.keyboard.press("m")
    expect(page.locator("#machine :is(select, input):enabled")).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Sizes").click()
    page.get_by_label("Named points").select_option("n = 2^30, p = 64")
    says(page, "Believed at n = 2^30 on 64 processes of here: ")
    page.go_back()
    says(page, AT_FIRST)
    other = open_tab()
    show(other, url)
    assert said(other) == sentences


@pytest.mark.lengthy
def test_the_command_saves_the_page_with_the_machine_and_the_values(tmp_path):
    model, page = tmp_path / "model.json", tmp_path / "page.html"
    write_model(made(), model)
    words = ["--machine", "cray-t3e-mpi:l=2e-5", "--at", "n=2^20,p=64", "--at", "n=2^30,p=256"]
    found = run_bsp("view", "--fit", model, *words, "--html", page)
    assert found.exit_code == 0, found.output
    answers = json.loads(
        re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))[1]
    )["answers"]
    points = {"predicted.json": ["2^20", "64"]}
    points["predicted.json?point=n%3A2%5E20,p%3A64"] = points["predicted.json"]
    points["predicted.json?point=n%3A2%5E30,p%3A256"] = ["2^30", "256"]
    shown = {path: answers[path]["point"] for path in answers if path != "model.json"}
    assert {path: [*point.values()] for path, point in shown.items()} == points


@pytest.mark.lengthy(values="all")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--fit", "model.json", "run.bsp"], "--fit takes no FILE"),
        (["--at", "n=4", "run.bsp"], "--at needs --fit"),
        ([], "name a trace or a folder, or a model by --fit"),
        (["--fit", "model.json", "--at", "m=4", "--html", "page.html"], "there is no variable m"),
        (["--fit", "missing.json", "--html", "page.html"], "missing.json cannot be read"),
    ],
)
def test_wrong_uses_of_the_command_are_said(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    write_model(made(), "model.json")
    found = run_bsp("view", *words)
    assert found.exit_code != 0
    said = found.output if isinstance(found.exception, SystemExit) else str(found.exception)
    assert text in said
