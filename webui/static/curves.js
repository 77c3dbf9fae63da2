/* Two charts over the number of processes: the speedup with its band, and the times of the cost
   centres. A click chooses a number of processes. */

import { byId, html, svg } from "./dom.js";
import { label, seconds } from "./format.js";
import { leavesOf, speedup } from "./predict.js";
import { valueText } from "./points.js";
import { logarithmicTicks } from "./ticks.js";

const HEIGHT = 210;
const MARGIN = { left: 58, right: 20, top: 10, bottom: 28 };
const MOST_CURVES = 4;
const LEAST_PART = 1e-4; // of the greatest time, below which nothing is drawn

function scale(low, high, from, to) {
  const [first, last] = [Math.log(low), Math.log(high > low ? high : 2 * low)];
  const at = (value) => from + (to - from) * (Math.log(Math.max(value, 1e-300)) - first) / (last - first);
  const back = (place) => Math.exp(first + (place - from) / (to - from) * (last - first));
  return { at, back, low, high };
}

const path = (points) => (points.length
  ? `M${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}` : "");

/* Points of a curve inside the chart: values that are not known or too small are left out. */
function points(predictions, value, x, y) {
  return predictions.map((each) => [each.point.p, value(each)])
    .filter(([, found]) => found !== null && Number.isFinite(found) && found > 0)
    .map(([p, found]) => [x.at(p), Math.min(Math.max(y.at(found), MARGIN.top), HEIGHT - MARGIN.bottom)]);
}

/* The numbers of processes that are drawn: past the roll-off and the chosen one. */
function drawn({ scaling, prediction }, measured) {
  const most = Math.max(4 * prediction.point.p, 4 * (scaling.rollOff ?? 1), 4 * measured.at(-1));
  const found = scaling.predictions.filter(({ point }) => point.p <= most);
  return found.length > 1 ? found : scaling.predictions;
}

export function createCurves({ store }, data) {
  const host = byId("curves");
  const measured = data.variables.find(({ name }) => name === "p").values;
  const charts = ["Speedup", "Time of the cost centres"].map((title) => {
    const figure = html("figure", {}, html("figcaption", {}, title));
    host.append(figure);
    return figure;
  });
  let model = null;

  function frame(figure, x, y, texts, drawing) {
    const width = figure.clientWidth;
    const bottom = HEIGHT - MARGIN.bottom;
    const right = width - MARGIN.right;
    const band = svg("rect", {
      class: "runs", x: x.at(Math.max(measured[0], x.low)), y: MARGIN.top,
      width: Math.max(x.at(Math.min(measured.at(-1), x.high)) - x.at(measured[0]), 2),
      height: bottom - MARGIN.top,
    }, svg("title", {}, "numbers of processes of the runs"));
    const grid = logarithmicTicks(y.low, y.high, 6).flatMap((value) => [
      svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y.at(value), y2: y.at(value) }),
      svg("text", { class: "tick", x: MARGIN.left - 6, y: y.at(value) + 4, "text-anchor": "end" },
        texts(value)),
    ]);
    const powers = Math.log2(x.high / x.low);
    const every = Math.max(1, Math.ceil(powers / Math.max((right - MARGIN.left) / 48, 1)));
    const below = [];
    for (let power = 0; 2 ** power <= x.high; power += every) {
      if (2 ** power < x.low) continue;
      below.push(svg("text", {
        class: "tick", x: x.at(2 ** power), y: bottom + 16, "text-anchor": "middle",
      }, valueText(2 ** power)));
    }
    const { p } = model.prediction.point;
    const here = svg("line", { class: "here", x1: x.at(p), x2: x.at(p), y1: MARGIN.top, y2: bottom });
    const { rollOff } = model.scaling;
    const off = rollOff === null || rollOff > x.high ? [] : [
      svg("line", { class: "roll-off", x1: x.at(rollOff), x2: x.at(rollOff), y1: MARGIN.top, y2: bottom }),
      svg("text", {
        class: "tick roll-off", x: x.at(rollOff) + (x.at(rollOff) > width / 2 ? -5 : 5),
        y: MARGIN.top + 10, "text-anchor": x.at(rollOff) > width / 2 ? "end" : "start",
      }, `roll-off ${valueText(rollOff)}`),
    ];
    const picture = svg("svg", {
      class: "curve", width, height: HEIGHT, role: "img",
      onclick: (event) => choose(x.back(event.clientX - picture.getBoundingClientRect().left)),
    }, band, ...grid, ...below, ...drawing, ...off, here);
    figure.querySelector("svg")?.remove();
    figure.append(picture);
    return picture;
  }

  function choose(value) {
    const p = Math.min(Math.max(Math.round(value), 1), data.most_processes);
    const power = 2 ** Math.round(Math.log2(p));
    const exact = measured.every((each) => Number.isInteger(Math.log2(each))) ? power : p;
    store.update({ point: { ...model.prediction.point, p: exact } });
  }

  function across(figure, predictions) {
    const counts = predictions.map(({ point }) => point.p);
    return scale(counts[0], counts.at(-1), MARGIN.left, Math.max(figure.clientWidth, 200) - MARGIN.right);
  }

  function showSpeedup(figure, predictions) {
    const first = model.scaling.predictions[0];
    const faster = (each) => speedup(model.scaling, each);
    const known = predictions.filter((each) => each.refused.size === 0 && faster(each) !== null);
    const x = across(figure, predictions);
    if (known.length < 2) {
      figure.querySelector("svg")?.remove();
      figure.querySelector(".quiet")?.remove();
      figure.append(html("p", { class: "quiet" }, first.refused.size
        ? "Not known: a part of the run with one process is not counted."
        : "Not known: a part of the run is not counted."));
      return;
    }
    figure.querySelector(".quiet")?.remove();
    const isFirst = ({ point }) => point.p === 1; // whose speedup is 1, whatever its time is
    const lower = (each) => (isFirst(each) ? 1
      : Number.isFinite(each.high) ? first.total / each.high : null);
    const upper = (each) => (isFirst(each) ? 1 : each.low > 0 ? first.total / each.low : null);
    const values = known.map(faster);
    const most = Math.max(...values, 2);
    const y = scale(Math.max(Math.min(...values), most / 1e4), 2 * most,
      HEIGHT - MARGIN.bottom, MARGIN.top);
    const outline = [...points(known, upper, x, y), ...points(known, lower, x, y).reverse()];
    const [start, limit] = [Math.max(x.low, y.low), Math.min(x.high, y.high)];
    const picture = frame(figure, x, y, (value) => String(Number(value.toPrecision(2))), [
      svg("path", { class: "band", d: `${path(outline)}Z` }),
      svg("path", { class: "perfect", d: path([start, limit].map((p) => [x.at(p), y.at(p)])) }),
      svg("path", { class: "total", d: path(points(known, faster, x, y)) }),
    ]);
    picture.setAttribute("aria-label", `Speedup over the number of processes; at p = ${
      valueText(model.prediction.point.p)} it is ${model.speedup?.toPrecision(3) ?? "not known"}`);
  }

  function showTimes(figure, predictions) {
    const times = predictions.map((each) => leavesOf(data, each));
    const most = Math.max(...predictions.map(({ total }) => total));
    const x = across(figure, predictions);
    const least = Math.min(...predictions.map(({ total }) => total)) / 20;
    const y = scale(Math.max(least, most * LEAST_PART, 1e-12), most, HEIGHT - MARGIN.bottom, MARGIN.top);
    const greatest = new Map();
    times.forEach((leaves, number) => leaves.forEach((value, leaf) => greatest.set(leaf,
      Math.max(greatest.get(leaf) ?? 0, value / (predictions[number].total || 1)))));
    const leaves = [...greatest].filter(([, part]) => part > 0.01).sort((a, b) => b[1] - a[1])
      .slice(0, MOST_CURVES).map(([leaf]) => leaf);
    const names = html("ul", { class: "names" });
    const curves = leaves.map((leaf, number) => {
      const name = label(data.nodes[leaf]);
      names.append(html("li", {}, html("i", { class: `curve-${number}`, "aria-hidden": "true" }), name));
      const value = (each) => times[predictions.indexOf(each)].get(leaf);
      const line = points(predictions, value, x, y);
      return svg("path", { class: `leaf curve-${number}`, d: path(line), "data-leaf": name },
        svg("title", {}, name));
    });
    const total = svg("path", { class: "total", d: path(points(predictions, ({ total: all }) => all, x, y)) });
    const picture = frame(figure, x, y, seconds, [...curves, total]);
    picture.setAttribute("aria-label", "Times of the greatest cost centres over the number of processes");
    figure.querySelector(".names")?.remove();
    figure.querySelector("figcaption").append(names);
  }

  function show(shown) {
    model = shown;
    const predictions = drawn(model, measured);
    showSpeedup(charts[0], predictions);
    showTimes(charts[1], predictions);
  }

  new ResizeObserver(() => {
    if (model !== null) show(model);
  }).observe(host);
  return { show };
}
