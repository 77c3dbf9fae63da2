/* The communication of each superstep against its h-relation, beside the line g h + l: the
   G graph of bspprof. A mark tells fan-in, fan-out and even exchanges apart. */

import { html } from "./dom.js";
import { bytes, count, seconds } from "./format.js";
import { sized } from "./ramp.js";
import { colour } from "./theme.js";
import { logarithmicTicks } from "./ticks.js";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const LEFT = 64;
const RIGHT = 16;
const TOP = 12;
const BOTTOM = 34;
const NEAR = 14; // pixels from a point within which it is meant
const RADIUS = 4;

/* The marks by pattern: colour, an outline around 0, 0, and the letter that looks like it. */
const MARKS = {
  even: { colour: "--even", trace: (c, r) => c.arc(0, 0, r, 0, 2 * Math.PI), letter: "●" },
  "fan-in": { colour: "--fan-in", trace: (c, r) => triangle(c, r, 1), letter: "▼" },
  "fan-out": { colour: "--fan-out", trace: (c, r) => triangle(c, r, -1), letter: "▲" },
};

function triangle(context, r, down) {
  context.moveTo(-r, -r * down);
  context.lineTo(r, -r * down);
  context.lineTo(0, r * 1.1 * down);
  context.closePath();
}

/* A logarithmic scale from values to pixels; values of 0 have a place of their own before it. */
/** @returns {{ at: (value: number) => number, low: number, high: number, hasZero: boolean }} */
function scaleOf(values, from, to, room) {
  const positive = values.filter((value) => value > 0);
  const low = positive.reduce((a, b) => Math.min(a, b), Infinity);
  const high = positive.reduce((a, b) => Math.max(a, b), 0);
  if (high === 0) return { at: () => from, low: 1, high: 1, hasZero: true };
  const [least, most] = [Math.log10(low) - 0.15, Math.log10(high) + 0.15];
  const hasZero = positive.length < values.length;
  const start = from + (hasZero ? room * Math.sign(to - from) : 0);
  const at = (value) => (value <= 0 ? from
    : start + (Math.log10(value) - least) / (most - least) * (to - start));
  return { at, low: 10 ** least, high: 10 ** most, hasZero };
}

/* Makes the canvas. read(position or null): the point under the pointer; choose(position).
   { canvas, show(answer, isSelected(position)), redraw() } */
export function createScatter(read, choose) {
  const canvas = html("canvas", { class: "scatter", role: "img" });
  let data = null;
  /** @type {(point: number) => any} */
  let selected = () => false;
  let hovered = null;

  function scales() {
    const { h, comm_s: times } = data.points;
    const { clientWidth: width, clientHeight: height } = canvas;
    const line = data.g > 0 || data.l > 0 ? data.points.predicted_s : [];
    return {
      x: scaleOf(h, LEFT + 10, width - RIGHT, 26),
      y: scaleOf([...times, ...line], height - BOTTOM, TOP, 0),
    };
  }

  function redraw() {
    if (data === null || canvas.clientWidth === 0) return;
    const { context, width, height } = sized(canvas);
    const { x, y } = scales();
    context.font = FONT;
    drawAxes(context, width, height, x, y);
    drawLine(context, x, y);
    const order = data.points.h.map((_, point) => point).sort((a, b) => selected(a) - selected(b));
    for (const point of order) drawPoint(context, point, x, y);
  }

  function drawAxes(context, width, height, x, y) {
    context.fillStyle = colour("--quiet");
    context.strokeStyle = colour("--line");
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const value of logarithmicTicks(y.low, y.high, (height - TOP - BOTTOM) / 26)) {
      context.fillText(seconds(value), LEFT - 8, y.at(value));
      line(context, LEFT, y.at(value), width - RIGHT, y.at(value));
    }
    context.textAlign = "center";
    for (const value of logarithmicTicks(x.low, x.high, (width - LEFT - RIGHT) / 70)) {
      context.fillText(bytes(value), x.at(value), height - BOTTOM + 12);
      line(context, x.at(value), TOP, x.at(value), height - BOTTOM);
    }
    if (x.hasZero) context.fillText("0 B", x.at(0), height - BOTTOM + 12);
    context.textAlign = "right";
    context.fillText("h of the superstep", width - RIGHT, height - 8);
    context.textAlign = "left";
    context.fillText("time of its communication", LEFT + 4, TOP - 4);
  }

  function line(context, x1, y1, x2, y2) {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  }

  function drawLine(context, x, y) {
    const { g, l } = data;
    if (g <= 0 && l <= 0) return;
    context.strokeStyle = colour("--critical");
    context.lineWidth = 1.5;
    context.beginPath();
    const steps = 60;
    for (let step = 0; step <= steps; step += 1) {
      const h = x.low * (x.high / x.low) ** (step / steps);
      const time = g * h + l;
      if (time > 0) context.lineTo(x.at(h), y.at(time));
    }
    context.stroke();
    context.lineWidth = 1;
  }

  function drawPoint(context, point, x, y) {
    const { h, comm_s: times, pattern, count } = data.points;
    const mark = MARKS[data.patterns[pattern[point]]];
    const radius = RADIUS + Math.min(3, Math.log10(count[point])) + (point === hovered ? 2 : 0);
    context.save();
    context.translate(x.at(h[point]), y.at(times[point]));
    context.beginPath();
    mark.trace(context, radius);
    context.globalAlpha = 0.75;
    context.fillStyle = colour(mark.colour);
    context.fill();
    context.globalAlpha = 1;
    if (selected(point) || point === hovered) {
      context.strokeStyle = colour(selected(point) ? "--chosen" : "--ink");
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(0, 0, radius + 3, 0, 2 * Math.PI);
      context.stroke();
    }
    context.restore();
  }

  /* The point nearest to a place on the canvas; null if none is near. */
  function nearest({ offsetX, offsetY }) {
    if (data === null) return null;
    const { x, y } = scales();
    let found = null;
    let least = NEAR ** 2;
    data.points.h.forEach((h, point) => {
      const distance = (x.at(h) - offsetX) ** 2 + (y.at(data.points.comm_s[point]) - offsetY) ** 2;
      if (distance <= least) [found, least] = [point, distance];
    });
    return found;
  }

  canvas.addEventListener("pointermove", (event) => {
    const found = nearest(event);
    if (found === hovered) return;
    hovered = found;
    read(found);
    redraw();
  });
  canvas.addEventListener("pointerleave", () => {
    hovered = null;
    read(null);
    redraw();
  });
  canvas.addEventListener("click", (event) => {
    const found = nearest(event);
    if (found !== null) choose(found);
  });
  new ResizeObserver(redraw).observe(canvas);

  function show(answer, isSelected) {
    if (answer !== data) hovered = null;
    data = answer;
    selected = isSelected;
    canvas.setAttribute("aria-label", `Time of communication and h of ${count(answer.supersteps, "superstep")}`);
    redraw();
  }

  return { canvas, show, redraw };
}

/* The marks with their names. */
export function markLegend() {
  return html("ul", { class: "mark-legend" }, ...Object.entries(MARKS).map(([name, mark]) => {
    const icon = html("span", { "aria-hidden": "true" }, mark.letter);
    icon.style.color = `var(${mark.colour})`;
    return html("li", {}, icon, ` ${name}`);
  }));
}
