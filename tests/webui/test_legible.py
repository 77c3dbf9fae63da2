"""Letters and contrast of the header, the search, the processes and the source."""

import pytest

from bsplib.recording.records import Trace
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

pytestmark = pytest.mark.browser

PARTS = "#header, #verdict, #bar, #left, #right, .source, .machine-panel"
FAINT = """parts => {
    const paper = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgba = (colour) => {
        paper.clearRect(0, 0, 1, 1);
        paper.fillStyle = colour;
        paper.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = paper.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], below) =>
        [r, g, b].map((value, i) => value * a + below[i] * (1 - a));
    const behind = (element) => {
        if (element === null) return [255, 255, 255];
        const colour = rgba(getComputedStyle(element).backgroundColor);
        return colour[3] === 1 ? colour.slice(0, 3) : over(colour, behind(element.parentElement));
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((value) => value / 255)
            .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
        const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
        return (bright + 0.05) / (dark + 0.05);
    };
    const faint = [];
    for (const part of document.querySelectorAll(parts)) {
        for (const element of part.querySelectorAll(":not(option, svg, svg *, canvas)")) {
            const text = [...element.childNodes].filter((node) => node.nodeType === 3)
                .map((node) => node.data.trim()).join("");
            if (!text || !element.checkVisibility({visibilityProperty: true})) continue;
            if (element.disabled) continue;
            const style = getComputedStyle(element);
            const ground = behind(element);
            const ratio = contrast(over(rgba(style.color), ground), ground);
            if (ratio < 4.5 || parseFloat(style.fontSize) < 11) {
                faint.push(`${text}: ${ratio.toFixed(1)}, ${style.fontSize}`);
            }
        }
    }
    return faint;
}"""


@pytest.fixture(scope="module")
def url(served, tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "solve.py"
    path.write_text("@cached\ndef main(bsp):\n    'text'  # why\n    bsp.sync(print(1))\n")
    made = Script(40)
    step(made, (frame("main", 1, 4, str(path)),), [1e-3 * pid for pid in range(40)])
    with served(Trace((run_of(made, arguments=["--size", "9"]),)), sources=path.parent) as url:
        yield url


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("palette", ["red", "safe"])
def test_every_text_can_be_read(open_tab, url, show, theme, palette):
    tab = open_tab(color_scheme=theme)
    show(tab, url, "view=source&machine=cray-t3e-mpi&search=main")
    if palette == "safe":
        tab.get_by_role("button", name="Shades in red").click()
    tab.keyboard.press("m")
    tab.locator(".source [data-bin]").first.wait_for()
    assert tab.evaluate(FAINT, PARTS) == []


@pytest.mark.slow
def test_a_long_name_on_the_critical_path_pushes_no_figure_out_of_the_panel(open_tab, served, show):
    made = Script(2)
    stack = frame("main", 1, 4), frame("a_name_that_does_not_fit_into_the_panel", 6, 9)
    step(made, stack, [1e-3, 3e-3])
    with served(Trace((run_of(made),))) as url:
        tab = open_tab()
        show(tab, url)
        panel = tab.locator("#left").bounding_box()
        scores = tab.locator("#chain .score").all()
        assert len(scores) == 3
        for score in scores:
            box = score.bounding_box()
            assert box["x"] + box["width"] <= panel["x"] + panel["width"]
