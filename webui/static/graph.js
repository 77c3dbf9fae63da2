/* The view "Graph": the shaded call graph, which can be moved, zoomed, filtered and walked. */

import { selection } from "./detail.js";
import { button, html } from "./dom.js";
import { createDrawing } from "./drawing.js";
import { LETTER_PX } from "./box.js";
import { below, calledBy, callersOf, executed, nodeOf } from "./executed.js";
import { addGraphKeys, neighbour } from "./graph-keys.js";
import { createFilters } from "./graph-filters.js";
import { percent } from "./format.js";
import { lineText, nodeText } from "./graph-texts.js";
import { looks } from "./looks.js";
import { onPrint } from "./print.js";
import { makeScene, namesOf } from "./scene.js";
import { onTheme } from "./theme.js";
import { hideTooltip, showTooltip } from "./tooltip.js";
import { PADDING, createViewport } from "./viewport.js";
import { ancestors, descendants, isIdleEnd, visible } from "./visible.js";

const SMALLEST_LETTERS = 11; // pixels
const READABLE = SMALLEST_LETTERS / LETTER_PX; // the scale of a graph that does not fit

const sameList = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

/* Of the context, beside what every view is given: texts of the tooltips; and for a graph of another
   view changes: { view, look(model, scene) of its nodes and lines, opening(model), the node on which a
   graph opens that does not fit, note() below it }. Such a graph has no zoom in the address. */
/** @param {HTMLElement} host @param {Context} context */
export function create(host, context) {
  const { update, state } = context.store;
  const { changes = null, texts = { nodeText, lineText } } = context;
  const stage = html("div", { class: "stage" });
  const note = html("p", { class: "note" });
  const filters = createFilters(context);
  host.replaceChildren(html("div", { class: "toolbar" }, filters.element, zoomButtons()), stage, note);
  const drawing = createDrawing(stage, namesOf(() => model));
  const viewport = createViewport(stage, { onChange: drawing.transform, onRest: rememberZoom });
  /** @type {Model} */
  let model = null;
  let scene = null;
  let shown = []; // the nodes of the scene
  let ids = []; // and their ids
  let unfolded = new Set(); // nodes that are shown because they were selected
  let remembered = changes === null ? state.zoom : null; // the part of the graph that the address names
  let hovered = { node: null, line: null };
  let asked = 0; // number of the latest scene that was asked for
  let isVisible = false;

  function zoomButtons() {
    return html("div", { class: "zoom joined", role: "group", "aria-label": "Zoom" },
      button("−", () => viewport.zoom(0.8), { "aria-label": "Zoom out", title: "Zoom out (−)" }),
      button("+", () => viewport.zoom(1.25), { "aria-label": "Zoom in", title: "Zoom in (+)" }),
      button("⤢", fit, { "aria-label": "Show all", title: "Show all (0)" }));
  }

  function fit() {
    viewport.fit();
    remember(null);
  }

  function remember(at) {
    remembered = at;
    if (changes === null) update({ zoom: at }, { push: false });
  }

  function rememberZoom() {
    const { view, room } = viewport;
    const at = viewport.fitted ? null : [
      Number(((room.width / 2 - view.x) / view.scale).toFixed(1)),
      Number(((room.height / 2 - view.y) / view.scale).toFixed(1)), Number(view.scale.toFixed(3)),
    ];
    remember(at);
  }

  /* Goes where the address leads, when the reader went back or changed it. */
  function followZoom(changed) {
    if (changes !== null || !changed?.has("zoom") || sameList(state.zoom ?? [], remembered ?? [])) return;
    remembered = state.zoom;
    open();
  }

  async function layOut(isNew) {
    const found = visible(model, state.filters, unfolded);
    if (!isNew && scene !== null && sameList(found.nodes, shown)) return;
    asked += 1;
    const number = asked;
    delete stage.dataset.nodes;
    const room = viewport.measure();
    const made = await makeScene(model, found, room, PADDING, context);
    if (number !== asked) return;
    const isSame = scene !== null && sameList(idsOf(found.nodes), ids) && isLike(made, scene);
    [scene, shown, ids] = [{ ...made, model }, found.nodes, idsOf(found.nodes)];
    drawing.load(scene);
    viewport.load(scene);
    hovered = { node: null, line: null };
    tellDropped();
    paint();
    mark();
    if (!isSame) open();
    stage.dataset.nodes = shown.length; // says that the graph is drawn
  }

  function tellDropped() {
    const isShown = new Set(shown);
    const folded = model.nodes.flatMap((_, node) =>
      (isShown.has(node) || isIdleEnd(model, node) ? [] : [model.score(node, "time")]));
    const most = folded.reduce((a, b) => Math.max(a, b), 0) / (model.score(model.root, "time") || 1);
    const sentence = `${folded.length} of ${model.nodes.length} nodes are not shown: each takes ${
      percent(most)} of the time, or less.`;
    note.textContent = [changes?.note(), folded.length ? sentence : ""].filter(Boolean).join(" ");
    filters.show(state, folded.length > 0);
  }

  /* Ids of nodes; those of functions below cost centres are their numbers. */
  const idsOf = (nodes) => nodes.map((node) => model.nodes[node]?.id ?? node);

  /* Whether two scenes are of the same size: then the same nodes stand where they stood. */
  function isLike(a, b) {
    return a.width === b.width && a.height === b.height;
  }

  /* Whether the scene shows the present model; while a new one is laid out, it does not. */
  function isCurrent() {
    return scene !== null && scene.model === model;
  }

  /* Shows all of the graph or, where its letters would be too small to read, the critical
     path; or what the address says. */
  function open() {
    viewport.fitted = true;
    if (remembered !== null) {
      viewport.fitted = false;
      viewport.centre(...remembered);
    } else if (viewport.fittingScale() * LETTER_PX >= SMALLEST_LETTERS) {
      viewport.fit();
    } else {
      openOnPath();
    }
  }

  function openOnPath() {
    const boxes = changes !== null ? []
      : model.chain(state.metric).map((node) => scene.boxes.get(node)).filter(Boolean);
    const selected = scene.boxes.get(changes?.opening(model) ?? selection(model, state).node);
    const path = selected ? [...boxes, selected] : boxes;
    if (path.length === 0) return viewport.fit();
    const part = selected ?? path[path.length - 1];
    const root = scene.boxes.get(model.root);
    const both = root ? around([root, part]) : part;
    viewport.open(around(path), viewport.scaleOf(both) < READABLE ? part : both, READABLE);
    return undefined;
  }

  /* The least box around some boxes. */
  function around(boxes) {
    const x = Math.min(...boxes.map((box) => box.x));
    const y = Math.min(...boxes.map((box) => box.y));
    const w = Math.max(...boxes.map((box) => box.x + box.w)) - x;
    const h = Math.max(...boxes.map((box) => box.y + box.h)) - y;
    return { x, y, w, h };
  }

  function paint() {
    drawing.paint(changes === null ? looks(model, scene, state.metric) : changes.look(model, scene));
  }

  function leadingTo(number) {
    const around = ancestors(model, nodeOf(model, number));
    return new Set([number, ...callersOf(model, number), ...around]);
  }

  function reachedFrom(number) {
    if (executed(model, number) !== null) return new Set([number, ...calledBy(model, number)]);
    const nodes = [...descendants(model, number)];
    return new Set([...nodes, ...nodes.flatMap((node) => below(model, node))]);
  }

  /* The nodes and lines that lead to a node or line, or from it. */
  function litBy({ node, line }) {
    if (node === null && line === null) return null;
    const [above, last] = line === null ? [node, node] : [scene.lines[line].from, scene.lines[line].to];
    const up = leadingTo(above);
    const down = reachedFrom(last);
    const nodes = new Set([...up, ...down]);
    const lines = new Set();
    scene.lines.forEach(({ from, to }, position) => {
      const leadsHere = up.has(from) && up.has(to);
      const leadsOn = down.has(from) && down.has(to);
      if (leadsHere || leadsOn || position === line) lines.add(position);
    });
    return { nodes, lines };
  }

  function mark() {
    const { node, edge } = selection(model, state);
    const line = edge === null ? null : scene.lines.findIndex((each) => each.edge === edge);
    const isHovered = hovered.node !== null || hovered.line !== null;
    const chosen = state.node === null ? { node: null, line: null } : { node, line };
    const lit = litBy(isHovered ? hovered : chosen);
    drawing.mark({
      selected: node, line, lit: lit?.nodes ?? null, litLines: lit?.lines ?? null,
      fading: isHovered, found: matches(),
    });
    drawing.setReachable(drawing.focused() ?? (scene.boxes.has(node) ? node : shown[0]));
  }

  /* The nodes that the search found, which its panel marks on the model; null without one. */
  function matches() {
    return state.search === "" ? null : model.found ?? null;
  }

  function select({ node, line }) {
    if (!isCurrent()) return undefined;
    if (node !== null) return update({ node: model.nodes[nodeOf(model, node)].id, edge: null });
    if (line === null) return undefined;
    const { edge, to } = scene.lines[line];
    return update({ node: model.nodes[nodeOf(model, to)].id, edge: edge === null ? null : model.edgeId(edge) });
  }

  function onHover(event) {
    if (!isCurrent()) return;
    const at = event.buttons ? { node: null, line: null } : drawing.hit(event);
    if (at.node !== hovered.node || at.line !== hovered.line) {
      hovered = at;
      mark();
    }
    if (at.node !== null) showTooltip(event, texts.nodeText(model, at.node, state.metric));
    else if (at.line !== null) {
      showTooltip(event, texts.lineText(model, scene.lines[at.line], state.metric));
    }
    else hideTooltip();
  }

  function onLeave() {
    hideTooltip();
    if (hovered.node === null && hovered.line === null) return;
    hovered = { node: null, line: null };
    if (isCurrent()) mark();
  }

  function onMenu(event) {
    event.preventDefault();
    if (!isCurrent()) return;
    const at = drawing.hit(event);
    const node = at.node ?? drawing.focused();
    hideTooltip();
    if (node !== null) filters.openMenu(event, model, node);
  }

  /* Moves the focus to the nearest node in a direction. */
  function walk(key) {
    if (!isCurrent()) return;
    const from = drawing.focused();
    const start = from ?? selection(model, state).node;
    const next = from === null && scene.boxes.has(start) ? start
      : neighbour(scene.boxes, start, key);
    if (next === null) return;
    drawing.setReachable(next);
    drawing.focus(next);
    viewport.reveal(scene.boxes.get(next));
  }

  function onKey(event) {
    if (event.key !== "Enter" && event.key !== " ") return;
    const node = drawing.focused();
    if (node === null) return;
    event.preventDefault();
    select({ node, line: null });
  }

  stage.addEventListener("click", (event) => select(drawing.hit(event)));
  stage.addEventListener("dblclick", (event) => {
    if (isCurrent()) filters.toggle(model, drawing.hit(event).node);
  });
  stage.addEventListener("contextmenu", onMenu);
  stage.addEventListener("pointermove", onHover);
  stage.addEventListener("pointerleave", onLeave);
  stage.addEventListener("keydown", onKey);
  addGraphKeys(changes?.view ?? "graph", {
    walk, fit, zoom: (factor) => viewport.zoom(factor),
    filter: (name) => {
      if (isCurrent()) filters.apply(name, model, drawing.focused() ?? selection(model, state).node);
    },
  });
  onTheme(() => {
    if (isCurrent() && isVisible) paint();
  });
  function resize() {
    if (!isVisible || scene === null) return;
    viewport.measure();
    if (viewport.fitted) viewport.fit();
  }

  new ResizeObserver(resize).observe(stage);
  onPrint(resize);

  /* Nodes that were selected although they are folded stay in the graph. */
  function unfoldSelected() {
    const node = model.indexOf(state.node);
    if (node !== null && !model.run.shown.includes(node)) unfolded.add(node);
  }

  /** @type {View["show"]} */
  function show(newModel, _, changed) {
    isVisible = true;
    const isNew = newModel !== model;
    if (isNew) unfolded = new Set();
    model = newModel;
    unfoldSelected();
    if (isNew || scene === null || changed === null || changed.has("filters") || changed.has("node")) {
      layOut(isNew);
    }
    if (!isCurrent()) return;
    followZoom(changed);
    if (changed === null || changed.has("model") || changed.has("metric")) paint();
    mark();
    const box = scene.boxes.get(model.indexOf(state.node));
    if (changed?.has("node") && box) viewport.reveal(box);
  }

  function hide() {
    isVisible = false;
    hideTooltip();
  }

  return { show, hide };
}
