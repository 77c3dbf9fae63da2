/* The graph as SVG: an element for each part of a node, so that each can be focused and read aloud. */

import {
  INSET, NAME_Y, RADIUS, UNDER_Y, VALUE_Y, barRectangles, farLetters, shortName, squeezed,
} from "./box.js";
import { svg } from "./dom.js";

const FAR = 0.62; // below this scale only names are shown, in larger letters

function barsPath(box, heights) {
  return barRectangles(box, heights)
    .map(([x, y, width, height]) => `M${x},${y}h${width}v${height}h${-width}z`).join("");
}

function makeNode(box, name, below, count) {
  const short = shortName(name);
  const fitted = (text, how) => {
    const width = squeezed(text, box.w, how);
    return { textLength: width, lengthAdjust: width === null ? null : "spacingAndGlyphs" };
  };
  const far = svg("text", { class: "far", x: box.x + box.w / 2, y: box.y + box.h / 2 }, short);
  far.style.fontSize = `${farLetters(short, box.w)}px`;
  const value = svg("text", { class: "value", x: box.x + INSET, y: box.y + VALUE_Y });
  const pie = svg("path", { class: "bars" });
  const badge = count ? svg("text", { class: "badge", x: box.x + box.w - INSET, y: box.y + NAME_Y },
    `+${count}`) : null;
  const element = svg("g", { class: "node", "data-node": box.node, role: "button", tabindex: -1 },
    svg("rect", { class: "shape", x: box.x, y: box.y, width: box.w, height: box.h, rx: RADIUS }),
    svg("text", { class: "title", x: box.x + INSET, y: box.y + NAME_Y, ...fitted(short, { hasBadge: count > 0 }) }, short),
    svg("text", { class: "under", x: box.x + INSET, y: box.y + UNDER_Y, ...fitted(below, { isName: false }) }, below), value, pie, far, badge);
  return { element, value, pie, box };
}

function makeLine({ edge, path }, position) {
  const line = svg("path", { class: "stroke", d: path });
  const grip = svg("path", { class: "grip", d: path });
  const element = svg("g", { class: edge === null ? "line folded" : "line", "data-line": position },
    grip, line);
  return { element, line };
}

/* A drawing in `host`; the caller transforms and marks it. nameOf and labelOf give the name of
   a node and the text that is read aloud. */
export function createDrawing(host, { nameOf, underOf, labelOf }) {
  const layer = svg("g", {});
  const halo = svg("rect", { class: "halo", rx: RADIUS + 4 });
  const lineLayer = svg("g", { class: "lines" });
  const nodeLayer = svg("g", { class: "nodes" });
  layer.append(lineLayer, nodeLayer, halo);
  const canvas = svg("svg", { class: "drawing", role: "group", "aria-label": "Call graph",
    "aria-description": "Arrow keys move from node to node, Enter selects one." }, layer);
  host.append(canvas);
  let nodes = new Map();
  let lines = [];
  let reachable = null;

  function load(scene) {
    nodes = new Map([...scene.boxes.values()].map((box) =>
      [box.node, makeNode(box, nameOf(box.node), shortName(underOf(box.node)), scene.below.get(box.node))]));
    lines = scene.lines.map(makeLine);
    canvas.classList.toggle("dense", scene.isDense);
    lineLayer.replaceChildren(...lines.map(({ element }) => element));
    nodeLayer.replaceChildren(...[...nodes.values()].map(({ element }) => element));
  }

  function paint(look) {
    for (const [node, { element, value, pie, box }] of nodes) {
      const { bin, text, bars, critical, apart } = look.nodes.get(node);
      element.dataset.bin = bin;
      element.classList.toggle("critical", critical);
      element.classList.toggle("apart", apart);
      element.setAttribute("aria-label", labelOf(node, text, critical));
      value.textContent = text;
      pie.setAttribute("d", barsPath(box, bars));
    }
    lines.forEach(({ element, line }, position) => {
      const { width, critical } = look.lines[position];
      line.style.strokeWidth = `${width}px`;
      element.classList.toggle("critical", critical);
    });
  }

  /* selected: a node; line: the chosen line; lit, litLines: sets of nodes and lines that are
     related to one, or null; fading: whether all others fade; found: set of nodes, or null. */
  function mark({ selected, line: chosen, lit, litLines, fading, found }) {
    canvas.classList.toggle("fading", fading);
    canvas.classList.toggle("searching", found !== null);
    for (const [node, { element }] of nodes) {
      element.classList.toggle("lit", lit !== null && lit.has(node));
      element.classList.toggle("found", found !== null && found.has(node));
      element.setAttribute("aria-pressed", node === selected);
    }
    lines.forEach(({ element }, position) => {
      element.classList.toggle("lit", litLines !== null && litLines.has(position));
      element.classList.toggle("chosen", position === chosen);
    });
    const around = nodes.get(selected)?.box;
    halo.toggleAttribute("hidden", !around);
    if (!around) return;
    for (const [name, value] of Object.entries({
      x: around.x - 4, y: around.y - 4, width: around.w + 8, height: around.h + 8,
    })) halo.setAttribute(name, value);
  }

  function transform({ x, y, scale }) {
    layer.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    canvas.classList.toggle("far", scale < FAR);
  }

  /* Only one node at a time is reached by the Tab key; the arrow keys change which one. */
  function setReachable(node) {
    nodes.get(reachable)?.element.setAttribute("tabindex", -1);
    reachable = node;
    nodes.get(node)?.element.setAttribute("tabindex", 0);
  }

  function hit(event) {
    const node = event.target.closest("[data-node]");
    if (node) return { node: Number(node.dataset.node), line: null };
    const line = event.target.closest("[data-line]");
    return line ? { node: null, line: Number(line.dataset.line) } : { node: null, line: null };
  }

  return {
    load, paint, mark, transform, setReachable, hit,
    focus: (node) => nodes.get(node)?.element.focus({ preventScroll: true }),
    focused: () => {
      /** @type {HTMLElement} */
      const within = document.activeElement?.closest("[data-node]");
      return within && canvas.contains(within) ? Number(within.dataset.node) : null;
    },
  };
}
