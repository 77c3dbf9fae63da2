"""The page of a node model in a real browser: the same predictions as Python, and what is seen."""

import re
from dataclasses import asdict, replace
from fractions import Fraction

import pytest
from click.testing import CliRunner
from playwright.sync_api import expect

from bsplib import webui
from bsplib.errors import UsageError
from bsplib.machine import Machine
from bsplib.machine.measured import COUNTS, Curve, Measured
from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import Node
from bsplib.profiler.models.nodes import predict_nodes, scaling, write_model
from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.laws import EXACT, FITTED, REFUSED, Law, Piece, Reach, Where
from bsplib.profiler.models.nodes.memory import LARGER_ARRAYS
from bsplib.profiler.models.nodes.model import ChainModel, NodeModel
from bsplib.profiler.models.nodes.moves import PLAIN, Moves, NewStep
from bsplib.profiler.models.nodes.opening import run_to_make
from bsplib.profiler.models.nodes.settle import words
from bsplib.tools.cli import main as cli
from bsplib.webui.predicted import describe_model
from tests.webui.conftest import served_app
from tests.webui.test_legible import FAINT, PARTS

HERE = Machine("here", "made up", g=1e-9, l=1e-5, speed=1e9)
THERE = Machine("there", "made up", g=4e-9, l=1e-4, speed=2e9, h="sum")
PROBED = replace(
    HERE,
    name="probed",
    measured=tuple(
        Measured(
            p,
            1e-5 * p,
            call=1e-7,
            get=2e-8,
            message=3e-7,
            pickle=2e-6,
            unpickle=1e-6,
            pickle_byte=3e-9,
            patterns={
                "exchange": Curve((8, 4096, 2**20), (3e-6, 9e-6 * p, 8e-4)),
                "all-to-all": Curve((0, 4096, 2**20), (1e-5 * p, 2e-5 * p, 1e-3)),
                "all-to-one": Curve((8, 2**16), (1e-6, 5e-4 * p)),
            },
            evicted=Curve((0, 4096, 2**20), (0.0, 1e-5, 2e-3)),
            evicted_puts=Curve((0, 4096, 2**20), (0.0, 2e-5, 5e-3)),
            evicted_collectives=Curve((64, 4096, 2**20), (4e-5, 6e-5, 8e-3)),
            evicting=2e-4,
            puts=Curve((8, 4096, 2**20), (4e-6, 2e-5 * p, 2e-3)),
            gets=Curve((8, 4096, 2**20), (2e-6, 7e-6 * p, 5e-4)),
            collectives=Curve((8, 4096, 2**20), (2e-5 * p, 4e-5 * p, 3e-3)),
            apart=Curve((0, 10**6, 10**7), (0.0, 3e-6 * p, 2e-5)),
            passes=Curve((2**15, 2**20, 2**22), (1e-5, 4e-4 * p, 4e-3 * p)),
            placed=Curve((0, 2**10, 2**20), (0.0, 1e-5 * p, 3e-3)),
            fetched=Curve((0, 2**12, 2**20), (0.0, 2e-5, 5e-3 * p)),
            cold=Curve((0, 2**14, 2**20), (0.0, 5e-5, 1e-3 * p)),
            first=Curve((0, 1, 2), (0.0, 1e-4, 9e-4 * p)),
            first_messages=Curve((0, 1, 2), (0.0, 5e-5, 3e-4 * p)),
            first_collectives=Curve((0, 1, 2), (0.0, 7e-5, 5e-4 * p)),
        )
        for p in (1, 2, 4, 64)
    ),
)
SIZES, PROCESSES = (4096.0, 16384.0, 65536.0), (2.0, 4.0, 8.0, 16.0)
POINTS = [
    (4096, 1),
    (65536, 32),
    (65536, 16),
    (65536, 1000),
    (2**30, 1024),
    (1000, 3),
    (2**24, 2**18),
]


def name(number):
    return f"n{number:016x}"


NODES = {
    name(0): Node(name(0), "function", "main", "/home/user/sort.py", 1, ""),
    name(1): Node(name(1), "function", "<exchange>", "/home/user/sort.py", 10, ""),
    name(2): Node(name(2), "cost_centre", "sort.py line 14", "/home/user/sort.py", 14, "sync"),
    name(3): Node(name(3), "cost_centre", "sort.py line 9", "/home/user/sort.py", 9, "sync"),
}


def exact(*terms, **more):
    coefficients, texts = zip(*terms, strict=True) if terms else ((), ())
    form = Form(tuple(Fraction(number) for number in coefficients), tuple(texts), rounded=True)
    return Law(EXACT, (Piece((form,)),), **more)


def fitted(*terms):
    return replace(exact(*terms), kind=FITTED, reach=Reach(0.05, 0.02, 0.1, 1.5))


SORTED = {
    "supersteps": exact((2, "log2(p)"), (1, "1")),
    "h": exact((8, "n*(p - 1)/p")),
    "h_sum": exact((16, "n*(p - 1)/p")),
    "comp": fitted((2e-9, "(n/p)*log2(n/p)"), (3e-7, "sqrt(n/p)")),
}
STAGES = Law(
    EXACT,
    tuple(
        Piece((Form((Fraction(8),), (term,), rounded=True),), (Where("n/p", 512, 1024, above),))
        for term, above in (("p**2", False), ("p*(p - 1)", True))
    ),
    why="the bound is not known more exactly",
    settle=({"n": 4096.0, "p": 6.0},),
)
COLLECTED = {
    "supersteps": exact((1, "1")),
    "h": STAGES,
    "h_sum": STAGES,
    "comp": fitted((1e-8, "p")),
}


NEW = (NewStep(2, 1.0), NewStep(0, 0.5), NewStep(1, 0.0))
MOVES = Moves({"placed": 0.25, "fetched": 0.5, "put": 0.125, "got": 0.0625}, NEW)
MAIL = Moves({"copied": 0.5, "pickled": 0.25} | dict.fromkeys(COUNTS, 0.75), NEW)
"""Ways to communicate: by puts and gets, and by messages."""


def made(moves=PLAIN, **laws):
    """Return a model of two cost centres, with other laws of the second."""
    places = [(size, count) for size in SIZES for count in PROCESSES]
    return NodeModel(
        "sort.py",
        NODES,
        (
            ChainModel((name(0), name(1), name(2)), SORTED, moves=moves),
            ChainModel((name(0), name(3)), {**COLLECTED, **laws}, pattern="all-to-one"),
        ),
        {"n": tuple(size for size, _ in places), "p": tuple(count for _, count in places)},
        runs=len(places),
        meta={"machine": asdict(HERE), "backend": "sim"},
    )


ALONE_NOTHING = replace(
    fitted((8.0, "n*(p - 1)/p**2"), (4.3, "sqrt(n)")),
    pieces=(
        Piece(
            (Form((8.0, 4.3), ("n*(p - 1)/p**2", "sqrt(n)"), rounded=True),),
            (Where("p", 1.0, 2.0, above=True),),
        ),
        Piece((ZERO,), (Where("p", 1.0, 2.0, above=False),)),
    ),
)


USED = Law(
    FITTED,
    (Piece((Form((64.0,), ("n/p",), rounded=True), Form((8.0,), ("n",), rounded=True))),),
)


def staged(kind):
    """Return a model whose second cost centre is a collective that chooses its stages."""

    def law(quantity):
        return exact((3, f"{quantity}_{kind}(8*ceil(n/7), 8, p, 2e5)"))

    return made(h=law("h"), h_sum=law("h"), supersteps=law("steps"))


UNKNOWN = Law(REFUSED, (), why="no form gives all of them", settle=({"n": 4096.0, "p": 32.0},))


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


def box(tab, title):
    return tab.locator(".node", has=tab.locator(f".title:text-is('{title}')"))


PREDICTED = """async ([data, rates, points]) => {
    const { predict, scaling, speedup } = await import("./static/predict.js");
    const { runToMake } = await import("./static/run-to-make.js");
    return points.map(([n, p]) => {
        const found = predict(data, { n, p }, rates);
        const more = scaling(data, found, rates);
        return [found.total, found.low, Number.isFinite(found.high) ? found.high : null,
            [...found.refused.keys()], more.rollOff, more.cause, speedup(more, found),
            runToMake(data, found, rates)];
    });
}"""


@pytest.mark.browser
@pytest.mark.parametrize("machine", [HERE, THERE, PROBED], ids=["h by max", "h by sum", "probed"])
@pytest.mark.parametrize(
    "model",
    [
        made(),
        made(h=UNKNOWN, h_sum=UNKNOWN),
        made(comp=fitted((3e-4, "1/p"), (1e-9, "n/p"))),
        made(comp=replace(fitted((1e-9, "n/p")), reach=Reach(0.1, 0.05, 1.0, 1.0, False))),
        made(comp=Law(EXACT, (Piece((ZERO,)),))),
        staged("spread"),
        staged("reduced"),
        staged("combined"),
        made(h=exact((40, "ceil(n/grid_rows(p))"))),
        made(supersteps=exact((1, "1"), inside="a larger run may have more")),
        made(h=ALONE_NOTHING, h_sum=ALONE_NOTHING),
        replace(made(), memory=USED),
        made(moves=MOVES),
        made(moves=MAIL, calls=exact((3, "n/p"))),
        made(calls=exact((3, "n/p"))),
    ],
    ids=[
        "pieces",
        "refused",
        "more terms",
        "not calibrated",
        "zero",
        "broadcast",
        "reduce",
        "allreduce",
        "grid",
        "inside",
        "alone",
        "memory",
        "moves",
        "mail",
        "calls",
    ],
)
def test_the_page_predicts_what_python_predicts(tab, url, model, machine, show):
    show(tab, url)
    check_page_predicts(tab, model, machine)


@pytest.mark.browser
@pytest.mark.parametrize("recorded_on", ["shm", "sim"])
def test_the_page_predicts_processes_that_slow_each_other_down(tab, url, recorded_on, show):
    """On the host of the runs, up to its 5 cores and beyond."""
    show(tab, url)
    recorded = {**made().meta["machine"], "speed": None, "name": "recorded"}
    model = replace(made(), meta={"machine": recorded, "backend": recorded_on, "host": "h"})
    entries = [replace(entry, slowdown=1 + entry.p / 10) for entry in PROBED.measured]
    machine = replace(PROBED, measured=tuple(entries), host="h", cores=5, speed=None)
    found = describe_model(webui.ShownModel(model, machine))["machines"][0]
    assert len(found["slowdowns"]) == (1 if recorded_on == "shm" else len(entries))
    check_page_predicts(tab, model, machine)


def check_page_predicts(tab, model, machine):
    prices = predict_nodes(model, 1, {"n": 4096}, machine).prices
    data = describe_model(webui.ShownModel(model, machine))
    rates = {"g": machine.g, "l": machine.l, "ratio": prices.ratio, "rule": machine.h}
    rates |= {name: data["machines"][0][name] for name in ("measured", "slowdowns")}
    found = tab.evaluate(PREDICTED, [data, rates, POINTS])
    places = list(model.nodes)
    for (n, p), (total, low, high, refused, roll_off, cause, speedup, run) in zip(
        POINTS, found, strict=True
    ):
        expected = predict_nodes(model, p, {"n": n}, machine)
        more = scaling(expected)
        assert total == pytest.approx(expected.total.total_s, rel=1e-12)
        assert low == pytest.approx(expected.low_s, rel=1e-12)
        assert (high or float("inf")) == pytest.approx(expected.high_s, rel=1e-12)
        assert {places[node] for node in refused} == set(expected.refused)
        assert roll_off == more.roll_off
        assert (None if cause is None else places[cause]) == more.cause
        assert run == run_to_make(expected)
        faster = more.speedup(expected)
        assert speedup == (None if faster is None else pytest.approx(faster, rel=1e-12))


@pytest.mark.browser
def test_the_page_predicts_for_a_machine_on_which_messages_take_no_time(tab, url, show):
    show(tab, url)
    nothing = {"exchange": Curve((8, 4096), (0.0, 0.0))}
    two = PROBED.measured[0]
    free = replace(PROBED, measured=(replace(two, patterns={**two.patterns, **nothing}),))
    check_page_predicts(tab, made(moves=MOVES), free)


@pytest.mark.browser
def test_the_page_opens_at_1024_processes_and_names_what_hurts_first(tab, url, show):
    show(tab, url)
    model = made()
    prediction = predict_nodes(model, 1024, {"n": 65536})
    found = scaling(prediction)
    time, hurts, roll_off, beyond = said(tab)
    assert time.startswith("n = 65536, p = 1024 on here: ")
    assert hurts.startswith("sort.py line 9 hurts first: it takes ")
    cause = model.nodes[found.cause].name
    assert roll_off == f"More than {found.roll_off} processes no longer help, because of {cause}."
    assert beyond == "Extrapolated beyond the 12 runs: p = 1024, where they have 2 to 16."
    worst = tab.locator(".node[data-bin='4'] .title").all_text_contents()
    assert "line 9" in worst
    assert "sort.py line 14" not in worst
    expect(tab.locator("#detail h2")).to_have_text("sort.py line 9")


@pytest.mark.browser
def test_a_slider_predicts_anew_by_its_keys_and_the_back_button_returns(tab, url, show):
    show(tab, url)
    slider = tab.get_by_role("slider", name="p, processes")
    requests = []
    tab.on("request", lambda request: requests.append(request.url))
    slider.focus()
    tab.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "2048")
    assert said(tab)[0].startswith("n = 65536, p = 2048 on here: ")
    assert "point=n:65536,p:2048" in tab.evaluate("decodeURIComponent(location.hash)")
    tab.go_back()
    expect(slider).to_have_attribute("aria-valuetext", "1024")
    assert requests == []


@pytest.mark.browser
def test_a_value_is_typed_as_a_number_or_a_power(tab, url, show):
    show(tab, url)
    field = tab.get_by_label("n: value")
    for text, value in (("2^30", "2^30"), ("1e6", "1000000"), ("nothing", "1000000")):
        field.fill(text)
        field.press("Enter")
        field.blur()
        expect(field).to_have_value(value)
    tab.get_by_label("p: value").fill("1000")
    tab.get_by_label("p: value").press("Enter")
    assert said(tab)[0].startswith("n = 1000000, p = 1000 on here: ")


@pytest.mark.browser
def test_values_beyond_the_runs_are_marked_and_those_inside_are_not(tab, url, show):
    show(tab, url, "point=n:16384,p:8")
    assert not any(sentence.startswith("Extrapolated") for sentence in said(tab))
    expect(tab.locator(".variable.beyond")).to_have_count(0)
    show(tab, url, "point=n:262144,p:8")
    expect(tab.locator(".variable.beyond")).to_have_text(
        re.compile("extrapolated: 4 times the largest run")
    )
    assert any(sentence.startswith("Extrapolated") for sentence in said(tab))


@pytest.mark.browser
def test_shades_by_growth_compare_with_the_reference_that_is_taken(tab, url, show):
    show(tab, url, "point=n:65536,p:64")
    tab.get_by_role("radio", name="more than at the reference").check()
    there = predict_nodes(made(), 64, {"n": 65536})
    start = predict_nodes(made(), 16, {"n": 65536})
    more = there.nodes[name(3)].total_s - start.nodes[name(3)].total_s
    expect(box(tab, "line 9").locator(".value")).to_have_text(fmt.seconds(more))
    tab.get_by_role("button", name="Take this point").click()
    expect(box(tab, "line 9").locator(".value")).to_have_text("0 s")
    assert "reference=n:65536,p:64" in tab.evaluate("decodeURIComponent(location.hash)")
    tab.get_by_role("button", name="Largest run").click()
    expect(box(tab, "line 9").locator(".value")).to_have_text(fmt.seconds(more))


@pytest.mark.browser
def test_another_machine_prices_the_same_laws(tab, show):
    with served_model(webui.ShownModel(made(), THERE, 64, {"n": 2.0**20})) as url:
        show(tab, url)
        expected = predict_nodes(made(), 64, {"n": 2**20}, THERE)
        time = fmt.seconds(expected.total.total_s)
        assert said(tab)[0].startswith(f"n = 2^20, p = 64 on there: {time} (")
        tab.keyboard.press("m")
        tab.get_by_label("Machine", exact=True).get_by_role("combobox").select_option("")
        expected = predict_nodes(made(), 64, {"n": 2**20})
        time = fmt.seconds(expected.total.total_s)
        assert said(tab)[0].startswith(f"n = 2^20, p = 64 on here: {time} (")
        tab.reload()
        assert said(tab)[0].startswith(f"n = 2^20, p = 64 on here: {time} (")


@pytest.mark.browser
def test_a_cost_centre_without_a_law_is_said_not_to_be_counted(tab, show):
    with served_model(webui.ShownModel(made(h=UNKNOWN, h_sum=UNKNOWN))) as url:
        show(tab, url, f"node={name(3)}")
        assert said(tab)[0].startswith("n = 65536, p = 1024 on here: at least ")
        assert said(tab)[-1] == (
            "Not counted: sort.py line 9: no form gives all of them; it would be settled by: "
            "n = 4096, p = 32."
        )
        expect(tab.locator("#laws .refused")).to_have_text(
            re.compile("^refused: no form gives all of them; it would be settled by")
        )
        expect(tab.locator("#curves figure").first).to_contain_text("Not known")


@pytest.mark.browser
def test_the_page_says_that_processes_share_the_cores_of_the_host_of_the_runs(tab, show):
    model = replace(made(), meta={**made().meta, "backend": "shm", "host": "h"})
    there = replace(THERE, host="h", cores=16)
    for count, is_said in ((16, False), (64, True)):
        with served_model(webui.ShownModel(model, there, count)) as url:
            show(tab, url)
            sentence = "64 processes share 16 cores: computation takes 4 times as long as recorded."
            assert (sentence in said(tab)) == is_said
            assert (
                f"assumed: {sentence[:-1]}"
                in str(predict_nodes(model, count, machine=there, values={"n": 65536}))
            ) == is_said


@pytest.mark.browser
def test_the_page_says_where_arrays_get_huge_pages_that_they_had_in_no_run(tab, show):
    model = made()
    real = replace(model, meta={**model.meta, "backend": "shm"})
    with served_model(webui.ShownModel(real, nprocs=16, values={"n": 2.0**24})) as url:
        show(tab, url)
        assert said(tab)[-1] == LARGER_ARRAYS
    assert str(predict_nodes(real, 16, {"n": 2**24})).endswith(LARGER_ARRAYS)
    with served_model(webui.ShownModel(model, nprocs=16, values={"n": 2.0**24})) as url:
        show(tab, url)
        assert LARGER_ARRAYS not in said(tab)


@pytest.mark.browser
def test_the_page_names_the_run_that_would_narrow_a_wide_band(tab, show):
    model = made(comp=replace(fitted((1e-6, "n/p")), reach=Reach(0.1, 0.05, 1.0, 1.0, True)))
    with served_model(webui.ShownModel(model, HERE, 16, {"n": 2.0**24})) as url:
        show(tab, url)
        (sentence,) = [each for each in said(tab) if each.startswith("Never seen")]
    run = words([run_to_make(predict_nodes(model, 16, {"n": 2**24}, HERE))])
    assert sentence == f"Never seen: how computation grows there (a run that would tell: {run})."


@pytest.mark.browser
def test_the_page_names_a_run_where_a_variable_is_never_above_0(tab, show):
    """It is no size, which would be doubled until it is large enough."""
    model = replace(made(), memory=USED)
    count = len(model.measured["p"])
    model = replace(model, measured={**model.measured, "root": (-1.0, 0.0) * (count // 2)})
    with served_model(webui.ShownModel(model, PROBED, 2, {"n": 2.0**30, "root": 1.0})) as url:
        show(tab, url)
        (sentence,) = [each for each in said(tab) if "data in the memory" in each]
    run = words([run_to_make(predict_nodes(model, 2, {"n": 2**30, "root": 1}, PROBED))])
    assert f"(a run that would settle it: {run})" in sentence


@pytest.mark.browser
def test_the_page_says_how_long_processes_take_to_start_and_end_on_their_host(tab, show):
    outside = replace(fitted((1e-2, "1"), (1e-3, "p")), reach=Reach(0.1))
    meta = {**made().meta, "backend": "shm", "host": "h"}
    model = replace(made(), meta=meta, outside=outside)
    for machine, is_said in ((replace(THERE, host="h"), True), (THERE, False)):
        with served_model(webui.ShownModel(model, machine, 16)) as url:
            show(tab, url)
            found = [each for each in said(tab) if each.startswith("Start and end")]
        text = "start and end of the processes: 26.0 ms more (23.5 ms to 28.7 ms), as in the runs"
        start = "Start and end of the processes take 26.0 ms more"
        assert found == [f"{start} (23.5 ms to 28.7 ms), as in the runs."] * is_said
        expected = str(predict_nodes(model, 16, {"n": 65536}, machine))
        assert (text in " ".join(expected.split())) == is_said


@pytest.mark.browser
def test_the_laws_of_a_cost_centre_are_shown_with_their_band(tab, url, show):
    show(tab, url, f"node={name(2)}")
    laws = tab.locator("#laws dd").all_text_contents()
    assert laws[:2] == ["2*log2(p) + 1", "8*n*(p - 1)/p"]
    assert laws[2].endswith("(± 5.1%)")


@pytest.mark.browser
def test_a_click_on_a_curve_chooses_the_number_of_processes(tab, url, show):
    show(tab, url)
    chart = tab.locator("#curves svg.curve").last
    there = chart.locator(".here").evaluate("line => [line.x1.baseVal.value, 100]")
    runs = chart.locator(".runs").bounding_box()
    chart.click(position={"x": there[0] - 40, "y": 100})
    expect(tab.get_by_label("p: value")).not_to_have_value("1024")
    assert runs["width"] > 10


@pytest.mark.browser
def test_keys_double_the_processes_and_choose_the_shades(tab, url, show):
    show(tab, url)
    tab.keyboard.press(">")
    expect(tab.get_by_label("p: value")).to_have_value("2048")
    tab.keyboard.press("<")
    tab.keyboard.press("<")
    expect(tab.get_by_label("p: value")).to_have_value("512")
    tab.keyboard.press("3")
    expect(tab.get_by_role("radio", name="time", exact=True)).to_be_checked()
    tab.keyboard.press("?")
    expect(tab.locator("#help")).to_contain_text("Twice as many processes")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_page_works_offline_in_any_window(open_tab, tmp_path, scheme, url, show):
    path = tmp_path / "page.html"
    webui.write_model_html(webui.ShownModel(made()), path)
    page = open_tab(width=800, height=900, color_scheme=scheme)
    page.goto(path.as_uri())
    sentences = said(page)
    assert len(sentences) == 4
    expect(page.locator(".node .title")).to_have_count(4)
    assert "<exchange>" in page.locator(".node .title").all_text_contents()
    other = open_tab()
    show(other, url)
    assert said(other) == sentences


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_of_the_prediction_can_be_read(open_tab, url, show, theme):
    tab = open_tab(color_scheme=theme)
    show(tab, url)
    tab.keyboard.press("m")
    said(tab)
    assert tab.evaluate(FAINT, f"{PARTS}, #curves") == []


def test_the_command_saves_the_page_with_the_machine_and_the_values(tmp_path):
    model, page = tmp_path / "model.json", tmp_path / "page.html"
    write_model(made(), model)
    words = ["--machine", "cray-t3e-mpi:l=2e-5", "-n", "64", "--at", "n=2^20"]
    found = CliRunner().invoke(cli, ["view", "--fit", str(model), *words, "--html", str(page)])
    assert found.exit_code == 0, found.output
    assert '"at": {"n": 1048576.0, "p": 64.0}' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--fit", "model.json", "run.bsp"], "--fit takes no FILE"),
        (["-n", "4", "run.bsp"], "--machine, --nprocs and --at need --fit"),
        ([], "name a trace or a folder, or a model by --fit"),
        (["--fit", "model.json", "--at", "m=4", "--html", "page.html"], "there is no variable m"),
        (["--fit", "missing.json", "--html", "page.html"], "missing.json cannot be read"),
    ],
)
def test_wrong_uses_of_the_command_are_said(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    write_model(made(), "model.json")
    found = CliRunner().invoke(cli, ["view", *words])
    assert found.exit_code != 0
    said = found.output if isinstance(found.exception, SystemExit) else str(found.exception)
    assert text in said


def test_a_model_without_a_machine_is_shown_with_a_note():
    data = describe_model(webui.ShownModel(replace(made(), meta={})))
    assert data["rates"]["source"] == "none"
    assert "do not name their Machine" in data["rates"]["note"]


def test_a_value_of_no_variable_is_refused():
    with pytest.raises(UsageError, match="there is no variable m; the variables are: n"):
        describe_model(webui.ShownModel(made(), values={"m": 3.0}))


@pytest.mark.browser
def test_the_page_says_that_more_memory_may_make_computation_slower(tab, show):
    model = replace(made(), memory=USED)
    with served_model(webui.ShownModel(model, PROBED, 16, {"n": 2.0**20})) as url:
        show(tab, url)
        (sentence,) = [each for each in said(tab) if each.startswith("Never seen")]
    assert sentence == (
        "Never seen: up to 8.39 MB of data in the memory of a process, where the runs had "
        "2.10 MB, so that computation may take up to 1.4 times as long as the formulas say (a run "
        "that would settle it: n = 2^19, p = 16)."
    )
    expected = str(predict_nodes(model, 16, {"n": 2**20}, PROBED))
    assert sentence.removeprefix("Never seen: ").removesuffix(".") in " ".join(expected.split())
