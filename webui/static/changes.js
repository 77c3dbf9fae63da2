/* What changed between two runs, as numbers and in texts: from the nodes of a comparison. */

import { bytes, integer, rounded, seconds } from "./format.js";

const TEXTS = {
  s: seconds, B: bytes, "": integer, "%": (value) => `${rounded(Number((100 * value).toFixed(9)))}%`,
};
/* Quantities that repeat exactly: their smallest change counts. */
const EXACT = new Set(["h", "supersteps"]);
export const MORE = "▲";
export const LESS = "▼";

/* A value of a quantity with its unit. */
export function valueText(value, { unit }) {
  return TEXTS[unit](value);
}

/* Whether a node was there before and after, with values that differ in the digits shown. */
export function differs({ before, after }, quantity) {
  if (before === null || after === null) return false;
  const [old, now] = [before[quantity.name], after[quantity.name]];
  return valueText(old, quantity) !== valueText(now, quantity)
    || (EXACT.has(quantity.name) && old !== now);
}

/* A change in percent of the value before, such as −64%; empty for a balance, and where
   there was nothing before. */
export function relativeText(node, quantity) {
  const before = node.before?.[quantity.name];
  if (!before || quantity.unit === "%") return "";
  const percent = 100 * change(node, quantity) / before;
  const size = Math.abs(percent);
  const digits = size >= 10 ? size.toFixed(0) : Number(size.toPrecision(2));
  return `${percent > 0 ? "+" : "−"}${digits}%`;
}

/* A quantity ({ name, unit }) of a node after less before. A missing side counts 0; it has no
   balance, which then does not change. */
export function change({ before, after }, { name, unit }) {
  if (unit === "%" && (before === null || after === null)) return 0;
  return (after?.[name] ?? 0) - (before?.[name] ?? 0);
}

/* Whether a change is for the better: 1, for the worse: -1, or none: 0. */
export function judged(node, quantity) {
  const sign = Math.sign(change(node, quantity));
  return quantity.better === "more" ? sign : -sign || 0;
}

/* Positions of the nodes: the whole run, then each function with its cost centres below it,
   those that changed most first; the cost centres of main stand for themselves. What cost
   nothing in both runs is left out. */
export function ranked(nodes, quantity) {
  const inside = new Map();
  const outer = [];
  nodes.forEach(({ parent }, position) => {
    if (parent === null || parent === 0) outer.push(position);
    else inside.set(parent, [...inside.get(parent) ?? [], position]);
  });
  const size = (position) => Math.abs(change(nodes[position], quantity));
  const byChange = (positions) => positions.sort((a, b) => size(b) - size(a) || a - b);
  const [whole, ...others] = outer;
  const order = [whole, ...byChange(others).flatMap((position) =>
    [position, ...byChange(inside.get(position) ?? [])])];
  return order.filter((position) => position === whole || costs(nodes[position]));
}

function costs({ before, after }) {
  return [before, after].some((side) =>
    side !== null && (side.time || side.loss || side.h || side.supersteps));
}
