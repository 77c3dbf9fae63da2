/* The view "Timeline": what each process did in each superstep, as a heat map. What is there
   is drawn at once, and refined when the server has answered. */

import { selection } from "./detail.js";
import { button, html } from "./dom.js";
import { bytes, integer, isPart, percent, seconds } from "./format.js";
import { LAYERS, SCALES } from "./heat.js";
import { createHeatData } from "./heatdata.js";
import { draw, hostRows, layout } from "./heatdraw.js";
import { describeCell, isWaiting } from "./heattext.js";
import { shortcut } from "./keys.js";
import { followPointers } from "./pointers.js";
import { onPrint } from "./print.js";
import { paint, ramp, rampLegend } from "./ramp.js";
import { onTheme } from "./theme.js";
import { inUnit } from "./ticks.js";
import { segments } from "./segments.js";
import { paintStacks, stacksLegend } from "./stacks.js";
import { descendants } from "./visible.js";

const AXES = { superstep: "supersteps", time: "time" };
const HELP = "Drag to move, turn the wheel to zoom, double-click to see one superstep, drag with "
  + "Shift to restrict all views to a range of supersteps. Those of the selected node are marked in blue.";
const WHEEL = 1.0015; // zoom for each pixel of the wheel
const LEAST_SUPERSTEPS = 1; // that are seen at the greatest zoom
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @param {HTMLElement} host @param {Context} context */
export function create(host, context) {
  const { state, update } = context.store;
  const canvas = html("canvas", {
    class: "heat", tabindex: 0, role: "application", "aria-label": "Heat map of processes and "
      + "supersteps. Arrow keys move the cursor.",
  });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const note = html("p", { class: "quiet hint" });
  const legend = html("div", { class: "legend-host" });
  const layers = html("div", { class: "segments", role: "radiogroup", "aria-label": "Colour" });
  const axes = html("div", { class: "segments", role: "radiogroup", "aria-label": "Axis" });
  const tool = (text, name, action) =>
    button(text, action, { class: "plain-button", "aria-label": name });
  host.replaceChildren(
    html("div", { class: "toolbar" }, layers, axes, html("span", { class: "joined" },
      tool("−", "Zoom out", () => zoom(2)), tool("+", "Zoom in", () => zoom(0.5)), tool("All", "Show all", fit))),
    canvas, html("div", { class: "below" }, html("div", {}, readout, note), legend));

  const data = createHeatData(context, {
    arrived,
    say(text) {
      sentence = text;
      readCursor();
    },
    busy: (flag) => canvas.setAttribute("aria-busy", String(flag)),
  });
  /** @type {Model} */
  let model = null;
  let visible = false;
  let sentence = ""; // about the data, instead of the help
  let images = new Map(); // by window
  let paintedH = 0; // the h of shade 1 in them
  let strips = null; // of the windows that are there
  let marks = [];
  let cursor = null; // { x, row }: a place on the axis, and a row
  let selected = null; // the range on the axis that is being selected
  let frame = false;

  // -- what is drawn -----------------------------------------------------------------------

  /* The layer of the reader's choice, or else the one that fits the shades of the graph. */
  function layer() {
    if (Object.hasOwn(LAYERS, state.layer ?? "")) return state.layer;
    const metric = state.metric.split("-")[0];
    return Object.hasOwn(LAYERS, metric) && metric !== "loss" ? metric : "account";
  }

  function view() {
    const [low, high] = state.span ?? data.whole();
    return high > low ? [low, high] : data.whole();
  }

  function windows() {
    return [data.windows.base, data.windows.fine].filter((heat) => heat !== null);
  }

  function mostH() {
    return Math.max(0, ...windows().map((heat) => heat.mostH));
  }

  function isThere() {
    return data.windows.base !== null && data.windows.base.columns > 0;
  }

  function place() {
    const count = state.axis === "superstep" ? 2 : 1;
    return layout(canvas.clientWidth, canvas.clientHeight, count, Boolean(model.run.run.hosts));
  }

  /* How many supersteps a column of the window in view has, in words; or how long it is. */
  function columnText() {
    const { base, fine } = data.windows;
    const [from, to] = view();
    const heat = fine !== null && fine.low <= from && to <= fine.high ? fine : base;
    const size = (heat.high - heat.low) / heat.columns;
    if (state.axis === "time") return `mean over ${seconds(size)} in each column`;
    return size > 1 ? `mean of ${integer(Math.round(size))} in each column` : "one in each column";
  }

  function makeStrips() {
    const h = {
      title: "h", of: "hs", most: mostH(), text: bytes(mostH()),
      about: "greatest h of a process in a superstep",
    };
    if (state.axis === "time") return [h];
    const most = Math.max(0, ...windows().map((heat) => heat.longest_s));
    return [{ title: "time", of: "durations", most, text: seconds(most),
      about: "time of a superstep" }, h];
  }

  /* The strips with what their columns mean at this zoom. */
  function captioned() {
    strips ??= makeStrips();
    const text = columnText();
    const found = strips.map((strip) => ({ ...strip, caption: `${strip.about}, ${text}` }));
    canvas.setAttribute("aria-description", `Above it: ${found.map(({ caption }) => caption).join("; ")}`);
    return found;
  }

  /* The part of the axis that supersteps from a to b, inclusive, take. */
  /** @param {number[]} steps */
  function stretch([first, last]) {
    const { base, fine } = data.windows;
    if (state.axis === "superstep") return [first, last + 1];
    const inFine = fine !== null && fine.first[0] < first && last < fine.last[fine.columns - 1];
    return (inFine ? fine : base).stretch(first, last);
  }

  function picture() {
    const { base, fine } = data.windows;
    const { hosts } = model.run.run;
    return {
      view: view(), strips: captioned(), rows: base.rows, processes: base.processes,
      hosts: hosts ? hostRows(hosts, base.rows, base.processes) : null,
      images: windows().map((heat) => ({
        heat, image: images.get(heat),
        covered: heat === base && fine !== null ? [fine.low, fine.high] : null,
      })),
      marks: marks.map(stretch), cursor: cursorCell(),
      brush: selected ?? (state.brush === null ? null : stretch(state.brush)),
      label: (value, [low, high]) => (state.axis === "superstep" ? integer(Math.round(value))
        : inUnit(value, Math.max(-low, high), (high - low) / 10)),
      least: state.axis === "superstep" ? 1 : 0,
    };
  }

  function redraw() {
    if (frame) return;
    frame = true;
    requestAnimationFrame(() => {
      frame = false;
      if (visible && isThere()) draw(canvas, picture());
    });
  }

  /* Paints the windows; keep: those that are painted already stay, unless their scale of h
     has changed. */
  function repaint(keep = false) {
    if (!isThere()) return;
    const most = mostH();
    const painted = painter(most);
    const kept = keep && (layer() !== "h" || most === paintedH) ? images : new Map();
    paintedH = most;
    images = new Map(windows().map((heat) => [heat, kept.get(heat) ?? painted(heat)]));
    strips = null;
    legend.replaceChildren(layer() === "account" ? stacksLegend(windows()) : legendOf(most));
    redraw();
  }

  /* What paints a window in the colours of the layer. */
  function painter(most) {
    if (layer() === "account") {
      const { top, bottom } = place();
      return (heat) => paintStacks(heat, bottom - top, isPart(state.metric) ? state.metric : null);
    }
    const colours = ramp();
    return (heat) => paint(heat.shades(layer(), most), heat.columns, heat.rows, colours);
  }

  function legendOf(most) {
    const [title, limits] = SCALES[layer()];
    const text = (limit) => (layer() === "h" ? bytes(limit * most) : percent(limit));
    return rampLegend(title, limits.map(text));
  }

  function arrived() {
    if (!visible) return;
    showControls();
    repaint(true);
    readCursor();
    mark();
    refine();
  }

  function refine() {
    if (visible) data.refine(view, () => place().width);
  }

  function mark() {
    const { node } = selection(model, state);
    const under = () => new Set([...descendants(model, node)].map((at) => model.nodes[at].id));
    data.marks(node === model.root ? null : model.nodes[node].id, under, (ranges) => {
      marks = ranges;
      redraw();
    });
  }

  // -- the cursor ------------------------------------------------------------------------

  function cell() {
    if (cursor === null || !isThere()) return null;
    const heat = data.at(cursor.x);
    const column = heat.columnAt(cursor.x);
    return { heat, column, row: cursor.row };
  }

  function cursorCell() {
    const found = cell();
    if (found === null) return null;
    const { heat, column, row } = found;
    return { from: heat.edges[column], to: heat.edges[column + 1], row };
  }

  function readCursor() {
    const found = cell();
    note.hidden = found !== null && sentence === "";
    note.textContent = sentence || HELP;
    readout.replaceChildren(...(found === null ? [] : describeCell(found, model, state.axis)));
  }

  const select = (id) => model.indexOf(id) !== null && update({ node: id, edge: null });

  /* Selects the cost centre of a cell; where it waits, goes to the process and line that it waits for. */
  function choose() {
    const found = cell();
    if (found === null) return;
    const { heat, column, row } = found;
    if (!isWaiting(heat, row * heat.columns + column)) select(heat.centres[column]);
    else {
      data.waited(found, ({ pid, node }) => {
        cursor = { x: (heat.edges[column] + heat.edges[column + 1]) / 2, row: Math.floor(pid / heat.block) };
        select(node);
        readCursor();
        redraw();
      });
    }
  }

  function moveCursor(columns, rows) {
    if (!isThere()) return;
    const [low, high] = view();
    if (cursor === null || cursor.x < low || cursor.x > high) cursor = { x: low, row: 0 };
    const { heat, column, row } = cell();
    const next = Math.min(heat.columns - 1, Math.max(0, column + columns));
    const x = (heat.edges[next] + heat.edges[next + 1]) / 2;
    cursor = { x, row: Math.min(heat.rows - 1, Math.max(0, row + rows)) };
    if (x < low || x > high) setView(low + x - (x < low ? low : high), high + x - (x < low ? low : high));
    readCursor();
    redraw();
  }

  // -- moving and zooming ------------------------------------------------------------------

  function setView(low, high) {
    const [from, to] = data.whole();
    const least = state.axis === "superstep" ? Math.min(LEAST_SUPERSTEPS, to) : (to - from) * 1e-9;
    const width = Math.min(Math.max(high - low, least), to - from);
    const start = Math.min(Math.max(low, from), to - width);
    const all = width >= (to - from) * 0.9999;
    const rounded = (value) => Number(value.toPrecision(12));
    update({ span: all ? null : [rounded(start), rounded(start + width)] }, { push: false });
  }

  function zoom(factor) {
    const [low, high] = view();
    const inside = cursor !== null && cursor.x > low && cursor.x < high;
    const middle = inside ? cursor.x : (low + high) / 2;
    setView(middle - (middle - low) * factor, middle + (high - middle) * factor);
  }

  function fit() {
    update({ span: null }, { push: false });
  }

  /* Shows the superstep under the cursor over the whole width, or those of its column. */
  function showSuperstep() {
    const found = cell();
    if (found === null) return;
    const { heat, column } = found;
    if (state.axis === "superstep") setView(heat.edges[column], heat.edges[column + 1]);
    else setView(heat.began_s[column], heat.finished_s[column]);
  }

  // -- selecting a range of supersteps -------------------------------------------------------

  /* The numbers of the supersteps in a part of the axis. */
  function stepsBetween(a, b) {
    const [low, high] = data.whole();
    const [from, to] = [a, b].sort((x, y) => x - y).map((x) => Math.min(Math.max(x, low), high));
    const [begin, end] = [data.at(from), data.at(to)];
    return [begin.first[begin.columnAt(from)], end.last[end.columnAt(to)]];
  }

  function selectTo(from, to, done) {
    if (!isThere()) return;
    const steps = stepsBetween(from, to);
    selected = done ? null : stretch(steps);
    redraw();
    if (!done) return;
    update({ brush: steps });
  }

  const showAll = () => update({ brush: null });

  // -- pointers and keys -----------------------------------------------------------------

  function point({ offsetX, offsetY }) {
    if (!isThere()) return;
    const { left, right, top, bottom } = place();
    const outside = offsetX < left || offsetX >= right || offsetY >= bottom;
    const { rows } = data.windows.base;
    const row = Math.floor((offsetY - top) / (bottom - top) * rows);
    cursor = outside ? null : { x: axisAt(offsetX), row: Math.min(Math.max(row, 0), rows - 1) };
    readCursor();
    redraw();
  }

  function axisAt(pixel) {
    const [low, high] = view();
    const { left, width } = place();
    return low + (pixel - left) / width * (high - low);
  }

  let dragged = null; // where a press began on the axis, if it selects

  function zoomAt(factor, x) {
    const [low, high] = view();
    const middle = axisAt(x);
    setView(middle - (middle - low) * factor, middle + (high - middle) * factor);
  }

  function shift(pixels) {
    const [low, high] = view();
    const distance = pixels / place().width * (high - low);
    setView(low + distance, high + distance);
  }

  followPointers(canvas, {
    press(event) { dragged = event.shiftKey ? axisAt(event.offsetX) : null; },
    pan(x, _, event) {
      if (dragged === null) shift(-x);
      else selectTo(dragged, axisAt(event.offsetX), false);
    },
    pinch: (factor, { x }) => zoomAt(1 / factor, x),
    release(event, moved) {
      if (moved) return dragged !== null && selectTo(dragged, axisAt(event.offsetX), true);
      point(event);
      return dragged === null ? choose() : showAll();
    },
    cancel() {
      selected = null;
      redraw();
    },
    hover: point,
    wheel(pixels, { x }, { deltaX, deltaY }) {
      if (Math.abs(deltaX) > Math.abs(deltaY)) shift(deltaX);
      else zoomAt(WHEEL ** pixels, x);
    },
  });
  canvas.addEventListener("pointerleave", () => {
    if (document.activeElement === canvas) return;
    cursor = null;
    readCursor();
    redraw();
  });

  canvas.addEventListener("dblclick", (event) => {
    point(event);
    showSuperstep();
  });

  const here = { section: "Timeline", view: "timeline" };
  shortcut(Object.keys(ARROWS), "Move the cursor", ({ key }) => {
    canvas.focus();
    moveCursor(...ARROWS[key]);
  }, here);
  shortcut(["+", "="], "Zoom in", () => zoom(0.5), here);
  shortcut("-", "Zoom out", () => zoom(2), here);
  shortcut("0", "Show the whole run", fit, here);
  shortcut("z", "Show one superstep: that of the cursor", showSuperstep, here);
  shortcut("Escape", "Show all supersteps in all views again", showAll, here);
  canvas.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    choose();
  });

  // -- controls --------------------------------------------------------------------------

  function showControls() {
    segments(layers, LAYERS, layer(), (value) => update({ layer: value }));
    segments(axes, AXES, state.axis, (value) => update({ axis: value, span: null }));
  }

  onTheme(() => visible && repaint());
  onPrint(() => {
    if (visible && isThere()) draw(canvas, picture());
  });
  new ResizeObserver(() => {
    redraw();
    refine();
  }).observe(canvas);

  /** @type {View["show"]} */
  function show(next, _, changed) {
    model = next;
    visible = true;
    if (changed?.has("metric") && !changed.has("layer") && state.layer !== null) {
      return update({ layer: null }, { push: false }); // which shows it
    }
    if (!data.load(place().width)) {
      cursor = null;
      return readCursor();
    }
    const onlyMoved = changed !== null && [...changed].every((name) => name === "span");
    if (!onlyMoved) {
      repaint();
      showControls();
      readCursor();
    }
    mark();
    redraw();
    return refine();
  }

  return {
    show,
    hide() {
      visible = false;
    },
  };
}
