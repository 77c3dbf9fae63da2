/* What changed between two runs, as numbers: from the nodes of a comparison. */

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
