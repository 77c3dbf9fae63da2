/* What the graph view draws: boxes and lines with their positions, from the layout that can
   be shown largest in the window. */

import { about } from "./executed.js";
import { label, shortLabel } from "./format.js";
import { route } from "./routes.js";
import { treeLayout } from "./tree-layout.js";

const MOST_LAID_OUT = 300; // larger graphs are not asked of the server
/* Lines are easier to follow in a layout of dot: an outline has to gain this much, and more where
   many nodes have several callers. */
const GAIN = 1.6;
const GAIN_OF_TANGLE = 4;
const DENSE = 3; // lines for each node

/* The texts of a node: its name in its box, what stands under it, and what is read aloud.
   modelOf() gives the model that is shown. */
export function namesOf(modelOf) {
  return {
    nameOf: (node) => shortLabel(about(modelOf(), node)),
    underOf: (node) => about(modelOf(), node).under ?? "",
    labelOf: (node, text, critical = false) =>
      `${label(about(modelOf(), node))}, ${text}${critical ? ", on the critical path" : ""}`,
  };
}

const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

/* The layouts of dot for some nodes: those of the run, or from the server; none where there
   is no server, or dot takes too long. */
async function dotLayouts(model, nodes, context) {
  const { state } = context.store;
  if (same(nodes, model.run.shown)) return Object.values(model.run.layouts);
  if (context.api.offline || nodes.length > MOST_LAID_OUT) return [];
  try {
    const query = { ...context.query(), nodes: nodes.join(",") };
    const path = context.api.address(state.trace, state.run, "layout", query);
    return Object.values(await context.api.get(path));
  } catch {
    return []; // the page can do without
  }
}

/* The scale at which a layout fills a room. */
export function fittingScale({ width, height }, room, padding) {
  return Math.min((room.width - 2 * padding) / Math.max(1, width),
    (room.height - 2 * padding) / Math.max(1, height));
}

/* The layout that can be shown largest, with some preference for those of dot. */
function largest(layouts, tree, { nodes, links }, room, padding) {
  const isTree = links.length < 1.1 * nodes.length;
  const gain = isTree ? GAIN : GAIN_OF_TANGLE;
  const scale = (layout) => fittingScale(layout, room, padding);
  const best = layouts.reduce((a, b) => (a === null || scale(b) > scale(a) ? b : a), null);
  const enough = best !== null && (scale(best) >= 1 || scale(best) * gain >= scale(tree));
  return enough ? best : tree;
}

/* { width, height, boxes: Map(node -> { node, x, y, w, h }), lines: [{ from, to, edge, path }],
     isDense (its lines are many, and drawn faintly), below }. found: the result of visible(). */
export async function makeScene(model, found, room, padding, context) {
  const tree = treeLayout(found.nodes, found.links, namesOf(() => model), room.width / Math.max(1, room.height));
  const layout = largest(await dotLayouts(model, found.nodes, context), tree, found, room, padding);
  const boxes = new Map(layout.nodes.map(([node, x, y, w, h]) => [node, { node, x, y, w, h }]));
  const points = new Map(layout.links.map(([from, to, , curve]) => [`${from} ${to}`, curve]));
  const lines = found.links.map(({ from, to, edge }) => ({
    from, to, edge,
    path: route(boxes.get(from), boxes.get(to), points.get(`${from} ${to}`) ?? null),
  }));
  const isDense = lines.length > DENSE * found.nodes.length;
  return { width: layout.width, height: layout.height, boxes, lines, isDense, below: found.below };
}

