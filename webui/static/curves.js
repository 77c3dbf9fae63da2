/* Two charts over the number of processes: the speedup with its band, and the times of the cost
   centres. A click chooses a number of processes. */

import { byId, html, svg } from "./dom.js";
import { seconds } from "./format.js";
import { logarithmicTicks } from "./ticks.js";

const HEIGHT = 210;
const MARGIN = { left: 58, right: 20, top: 10, bottom: 36 };
const BOTTOM = HEIGHT - MARGIN.bottom;
const LEAST_PART = 1e-4; // of the greatest value, below which nothing is drawn
const TICK = 56; // pixels of a number below the chart

/* A logarithmic scale from values to pixels. */
function scaleOf(low, high, from, to) {
  const [first, last] = [Math.log(low), Math.log(high > low ? high : 2 * low)];
  return { low, high, at: (value) => from + (to - from) * (Math.log(value) - first) / (last - first) };
}

const short = (value) => (value >= 2 ** 17 ? `2^${Math.round(Math.log2(value))}` : String(Number(value.toPrecision(3))));

/** @param {any} context */
export function createCurves({ store, isSaved }) {
  const host = byId("curves");
  const figures = ["Speedup", "Time of the cost centres"].map((title) => html("figure", {}, html("figcaption", {}, title)));
  host.replaceChildren(...figures);
  let predicted = null;

  /* Points of a curve inside the chart; values that are not known are left out. */
  function points(values, x, y) {
    return values.map((value, i) => [predicted.curves.p[i], value]).filter(([, value]) => value > 0)
      .map(([p, value]) => [x.at(p), Math.min(Math.max(y.at(Math.max(value, y.low)), MARGIN.top), BOTTOM)]);
  }

  const path = (found) => `M${found.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}`;
  const curve = (name, found, title) => (found.length === 0 ? [] : [svg("path", { class: name, d: path(found) },
    title ? svg("title", {}, title) : null), ...found.map(([cx, cy]) => svg("circle", { class: name, cx, cy, r: 2 }))]);
  const upright = (name, x) => svg("line", { class: name, x1: x, x2: x, y1: MARGIN.top, y2: BOTTOM });

  function choose(event, x) {
    const { p } = predicted.curves;
    const away = (count) => Math.abs(x.at(count) - event.offsetX);
    const nearest = p.reduce((best, count) => (away(count) < away(best) ? count : best), p[0]);
    store.update({ point: { ...predicted.point, p: String(nearest) } });
  }

  /* The axes, the numbers of processes of the runs and of the point, the roll-off, and a drawing. */
  function frame(figure, x, y, texts, label, drawing) {
    const { runs, here, roll_off: off } = predicted.curves;
    const right = x.at(x.high);
    const [from, to] = runs.map((p) => x.at(Math.min(Math.max(p, x.low), x.high)));
    const isLeft = off !== null && x.at(off) < (MARGIN.left + right) / 2;
    const picture = svg("svg", {
      class: "curve", width: right + MARGIN.right, height: HEIGHT, role: "img", "aria-label": label,
      onclick: (event) => isSaved || choose(event, x),
    },
    svg("rect", { class: "runs", x: from, y: MARGIN.top, width: Math.max(to - from, 2), height: BOTTOM - MARGIN.top },
      svg("title", {}, "numbers of processes of the runs")),
    ...logarithmicTicks(y.low, y.high, 6).flatMap((value) => [
      svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y.at(value), y2: y.at(value) }),
      svg("text", { class: "tick", x: MARGIN.left - 6, y: y.at(value) + 4, "text-anchor": "end" }, texts(value)),
    ]),
    ...logarithmicTicks(x.low, x.high, (right - MARGIN.left) / TICK).map((value) =>
      svg("text", { class: "tick", x: x.at(value), y: BOTTOM + 15, "text-anchor": "middle" }, short(value))),
    svg("text", { class: "tick", x: right, y: BOTTOM + 30, "text-anchor": "end" }, "number of processes"),
    ...drawing,
    ...(off === null || off > x.high ? [] : [upright("roll-off", x.at(off)),
      svg("text", { class: "tick roll-off", x: x.at(off) + (isLeft ? 5 : -5), y: MARGIN.top + 10,
        "text-anchor": isLeft ? "start" : "end" }, `roll-off ${short(off)}`)]),
    upright("here", x.at(here)));
    figure.append(picture);
  }

  function acrossOf(figure) {
    const { p } = predicted.curves;
    return scaleOf(p[0], p.at(-1), MARGIN.left, Math.max(figure.clientWidth, 200) - MARGIN.right);
  }

  function showSpeedup(figure) {
    const { speedup, fastest, slowest, unknown } = predicted.curves;
    if (speedup === null) {
      figure.append(html("p", { class: "quiet" }, unknown));
      return;
    }
    const x = acrossOf(figure);
    const most = Math.max(...speedup, 2);
    const y = scaleOf(Math.max(Math.min(...speedup), most * LEAST_PART), 2 * most, BOTTOM, MARGIN.top);
    const outline = [...points(fastest, x, y), ...points(slowest, x, y).reverse()];
    const ends = [Math.max(x.low, y.low), Math.min(x.high, y.high)];
    frame(figure, x, y, short, "Speedup over the number of processes", [
      svg("path", { class: "band", d: `${path(outline)}Z` }),
      svg("path", { class: "perfect", d: path(ends.map((p) => [x.at(p), y.at(p)])) }),
      ...curve("total", points(speedup, x, y)),
    ]);
  }

  function showTimes(figure) {
    const { total, leaves } = predicted.curves;
    const x = acrossOf(figure);
    const most = Math.max(...total);
    const y = scaleOf(Math.max(Math.min(...total) / 20, most * LEAST_PART, 1e-12), most, BOTTOM, MARGIN.top);
    figure.firstChild.append(html("ul", { class: "names" }, ...leaves.map(({ name }, number) =>
      html("li", {}, html("i", { class: `curve-${number}`, "aria-hidden": "true" }), name))));
    frame(figure, x, y, seconds, "Times of the greatest cost centres over the number of processes", [
      ...leaves.flatMap(({ name, seconds: values }, number) => curve(`leaf curve-${number}`, points(values, x, y), name)),
      ...curve("total", points(total, x, y)),
    ]);
  }

  function draw() {
    for (const figure of figures) figure.replaceChildren(html("figcaption", {}, figure.firstChild.firstChild));
    showSpeedup(figures[0]);
    showTimes(figures[1]);
  }

  new ResizeObserver(() => predicted !== null && draw()).observe(host);
  return {
    show(model) {
      predicted = model.predicted;
      draw();
    },
  };
}
