/* A layout of the call graph as an outline in columns, without a server and in one pass: for
   graphs that are too large for dot, and for saved pages.

   Each node has a row, below the node that called it first and indented by its depth. The rows
   are broken into as many columns of equal height as let the whole be shown largest. */

import { HEIGHT, boxWidth } from "./box.js";

const ROW = HEIGHT + 10;
const INDENT = 22;
const MOST_INDENT = 12; // deeper nodes are not indented further
const GUTTER = 56; // between two columns

/* The nodes in the order of their rows, each with its depth: a walk down from the roots, in
   which a node comes below its first caller. */
function rows(nodes, links) {
  const calls = new Map(nodes.map((node) => [node, []]));
  const called = new Set();
  for (const { from, to } of links) {
    calls.get(from).push(to);
    called.add(to);
  }
  const found = [];
  const seen = new Set();
  const roots = nodes.filter((node) => !called.has(node));
  for (const root of [...roots, ...nodes]) { // in a circle of calls no node is a root
    const waiting = [[root, 0]];
    while (waiting.length) {
      const [node, depth] = waiting.pop();
      if (seen.has(node)) continue;
      seen.add(node);
      found.push({ node, depth });
      for (const callee of [...calls.get(node)].reverse()) waiting.push([callee, depth + 1]);
    }
  }
  return found;
}

/* The rows broken into columns, each { rows, shallowest, width }. */
function broken(found, widths, perColumn) {
  const columns = [];
  for (let first = 0; first < found.length; first += perColumn) {
    const part = found.slice(first, first + perColumn);
    const shallowest = part.reduce((least, { depth }) => Math.min(least, depth), Infinity);
    const indent = (depth) => INDENT * Math.min(MOST_INDENT, depth - shallowest);
    const width = part.reduce((most, { node, depth }) =>
      Math.max(most, indent(depth) + widths.get(node)), 0);
    columns.push({ rows: part, indent, width });
  }
  return columns;
}

function totalWidth(columns) {
  return columns.reduce((sum, { width }) => sum + width + GUTTER, -GUTTER);
}

/* The columns that a window of this shape (width divided by height) shows largest. */
function bestColumns(found, widths, shape) {
  let [best, least] = [[], Infinity];
  for (let count = 1; count <= Math.ceil(Math.sqrt(found.length)); count += 1) {
    const perColumn = Math.ceil(found.length / count);
    const columns = broken(found, widths, perColumn);
    const size = Math.max(totalWidth(columns), perColumn * ROW * shape);
    if (size < least) [best, least] = [columns, size];
  }
  return best;
}

/* Lays out nodes and links { from, to }: { width, height, nodes: [[node, x, y, width, height]],
   links: [] }; whoever draws finds the paths of the lines. */
export function treeLayout(nodes, links, { nameOf, underOf }, shape) {
  const widths = new Map(nodes.map((node) => [node, boxWidth(nameOf(node), underOf(node))]));
  const columns = bestColumns(rows(nodes, links), widths, shape);
  const placed = [];
  let left = 0;
  for (const { rows: part, indent, width } of columns) {
    part.forEach(({ node, depth }, row) =>
      placed.push([node, left + indent(depth), row * ROW, widths.get(node), HEIGHT]));
    left += width + GUTTER;
  }
  const longest = columns.reduce((most, column) => Math.max(most, column.rows.length), 0);
  return {
    width: Math.max(0, left - GUTTER), height: Math.max(0, longest * ROW - ROW + HEIGHT),
    nodes: placed, links: [],
  };
}
