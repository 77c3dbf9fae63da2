import json
import re

import pytest

from bsplib import webui
from bsplib.errors import BspError
from bsplib.profiler import limits, window
from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace, write_trace
from bsplib.webui import answers, page, services
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

# Names of a namespace, which no browser fetches.
NAMESPACES = ("http://www.w3.org/2000/svg",)
MODULES = [path.stem for path in page.STATIC.glob("*.js")]


@pytest.fixture(scope="module")
def saved(broadcast_trace):
    return page.saved_page(broadcast_trace)


def data_of(html):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    return json.loads(text)


@pytest.mark.lengthy
def test_a_saved_page_names_no_address_to_load_from(saved):
    for namespace in NAMESPACES:
        saved = saved.replace(namespace, "")
    assert not re.search(r"https?:|//[a-z0-9.-]+\.[a-z]+/", saved)
    assert not re.search(r"@import|url\(|\bsrc=|<iframe|<object|<embed", saved)
    assert re.findall(r'href="([^"]*)"', saved) == ["data:,"]


@pytest.mark.lengthy
def test_a_saved_page_holds_the_answer_of_every_query_that_a_view_asks_it_to(
    broadcast_trace, monkeypatch
):
    answer = answers.PageAnswer(lambda _, query: dict(query), saved=lambda _: ({}, {"node": "a b"}))
    monkeypatch.setitem(answers.ANSWERS, "lines", answer)
    found = data_of(page.saved_page(broadcast_trace))["answers"]
    assert found["traces/0/runs/0/lines.json"] == {}
    assert found["traces/0/runs/0/lines.json?node=a%20b"] == {"node": "a b"}


@pytest.mark.lengthy
@pytest.mark.parametrize("most", [64, 2**20], ids=["long", "short"])
def test_a_saved_page_is_summed_up_in_fewer_passes_to_what_each_answer_says_alone(
    broadcast_trace, tmp_path, monkeypatch, most
):
    write_trace(tmp_path / "run.bsp", broadcast_trace)
    monkeypatch.setattr(services, "lay_out", lambda *args: {})  # it may run out of time
    monkeypatch.setattr(window, "ROWS", most)
    passes = []

    class Counted(window._WindowReader):
        def __init__(self, *args):
            passes.append(args)
            super().__init__(*args)

    monkeypatch.setattr(window, "_WindowReader", Counted)
    together = data_of(page.saved_page(read_trace(tmp_path / "run.bsp")))
    count = len(passes)
    monkeypatch.setattr(page, "sum_up", lambda opened: None)
    monkeypatch.setattr(page, "survey_with_steps", lambda run: None)
    assert data_of(page.saved_page(read_trace(tmp_path / "run.bsp"))) == together
    assert len(passes) - count >= count + 4


@pytest.mark.lengthy
def test_a_saved_page_allows_its_own_scripts_by_hash_and_no_others(saved):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', saved).group(1)
    policy = policy.replace("&#39;", "'")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 1 + len(page.styles())


@pytest.mark.lengthy
def test_a_hostile_name_cannot_end_the_data(hostile_trace):
    html = page.saved_page(hostile_trace)
    assert html.count("</script>") == 2
    assert "<img" not in html
    data = data_of(html)
    names = {node["name"] for node in data["answers"]["traces/0/runs/0.json"]["nodes"]}
    assert "<script>alert('name')</script>" in names


def test_embedded_json_has_nothing_that_html_or_old_javascript_minds():
    text = page.embedded_json({"<&>": "\u2028\u2029</script>ü"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"<&>": "\u2028\u2029</script>ü"}


def test_write_html_says_what_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_SHARES", 3)
    made = Script(4)
    step(made, (frame("main", 1, 2),), 1e-3)
    with pytest.raises(BspError, match="too large to show: 3 nodes and edges for 4 processes"):
        webui.write_html(Trace((run_of(made),)), tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.lengthy
def test_write_html_leaves_nothing_behind_where_it_cannot_write(broadcast_trace, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        webui.write_html(broadcast_trace, tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        webui.write_html(broadcast_trace, tmp_path / "missing" / "profile.html")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("name", MODULES)
def test_no_module_makes_markup_or_code_from_text(name):
    source = (page.STATIC / f"{name}.js").read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(", source
    )
