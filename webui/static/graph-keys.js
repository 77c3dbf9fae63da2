/* The keys of the graph, and which node an arrow key leads to. */

import { shortcut } from "./keys.js";

const ARROWS = {
  ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
};
const ASIDE = 2.5; // how much more a distance aside counts than one ahead

/* The nearest node in the direction of an arrow key; null if there is none. */
export function neighbour(boxes, from, key) {
  const [dx, dy] = ARROWS[key];
  const middle = ({ x, y, w, h }) => [x + w / 2, y + h / 2];
  const start = boxes.get(from);
  if (!start) return boxes.keys().next().value ?? null;
  const [x0, y0] = middle(start);
  let [best, least] = [null, Infinity];
  for (const box of boxes.values()) {
    const [x, y] = middle(box);
    const ahead = (x - x0) * dx + (y - y0) * dy;
    const aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
    const cost = ahead + ASIDE * aside;
    if (ahead > 1 && ahead * 3 > aside && cost < least) [best, least] = [box.node, cost];
  }
  return best;
}

const FILTER_KEYS = {
  f: ["only", "Show only the node with its callers and callees"],
  h: ["hide", "Hide the node"],
  s: ["from", "Show from the node on: the node and its callees"],
  c: ["collapse", "Collapse or expand the callees of the node"],
  u: ["unfold", "Unfold or fold the functions executed below a cost centre (runs with samples)"],
  r: ["reset", "Reset: show what was shown at first"],
};

/* Registers the shortcuts; actions: walk(key), fit(), zoom(factor), filter(name). In another view than
   "graph" these are only the arrows. */
export function addGraphKeys(view, { walk, fit, zoom, filter }) {
  const here = { section: "Graph", view };
  const inGraph = ({ target }) => target === document.body || target.closest(".stage") !== null;
  shortcut(Object.keys(ARROWS), "Move from node to node", ({ key }) => walk(key),
    { ...here, when: inGraph });
  if (view !== "graph") return;
  shortcut("Enter", "Select the node", () => {}, { ...here, when: () => false });
  shortcut("0", "Show all of the graph", fit, here);
  shortcut(["+", "="], "Zoom in", () => zoom(1.25), here);
  shortcut("-", "Zoom out", () => zoom(0.8), here);
  for (const [key, [name, help]] of Object.entries(FILTER_KEYS)) {
    shortcut(key, help, () => filter(name), here);
  }
}
