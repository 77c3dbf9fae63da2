/* Which nodes of the call graph are shown under the filters of the state, and the lines
   between them: edges, and chains of calls through nodes that are not shown. */

import { below as functionsBelow, executed } from "./executed.js";

const NEGLIGIBLE = 0.001; // part of the time in main
const FEW = 120; // nodes related to one node that are all shown, however cheap

/* The nodes that are reached from a node along edges: "callees" with end "to", or "callers"
   with end "from"; the node itself included. `stop` ends the search below a node. */
export function reached(model, start, lists, end, stop = (_) => false) {
  const seen = new Set([start]);
  const waiting = [start];
  while (waiting.length) {
    const node = waiting.pop();
    if (stop(node)) continue;
    for (const edge of model[lists][node]) {
      const other = model.edges[edge][end];
      if (!seen.has(other)) {
        seen.add(other);
        waiting.push(other);
      }
    }
  }
  return seen;
}

export function descendants(model, node) {
  return reached(model, node, "callees", "to");
}

export function ancestors(model, node) {
  return reached(model, node, "callers", "from");
}

/* All callers and callees of a node, direct and indirect, and the node. */
export function related(model, node) {
  return new Set([...ancestors(model, node), ...descendants(model, node)]);
}

function positions(model, ids) {
  return new Set(ids.map((id) => model.indexOf(id)).filter((node) => node !== null));
}

/* The nodes that the filters allow, and those through which lines may lead. */
function allowed(model, filters) {
  const collapsed = positions(model, filters.collapsed);
  const from = model.indexOf(filters.from) ?? model.root;
  const found = reached(model, from, "callees", "to", (node) => collapsed.has(node));
  const only = model.indexOf(filters.only);
  const kept = only === null ? null : related(model, only);
  const hidden = positions(model, filters.hidden);
  for (const shown of [from, only]) hidden.delete(shown); // also where an address asks for both
  const through = new Set([...found].filter((node) => kept === null || kept.has(node)));
  return { through, candidates: new Set([...through].filter((node) => !hidden.has(node))) };
}

/* { nodes, links, below }: the nodes that are shown, in the order of the graph; lines
   { from, to, edge }, where edge is null for calls through nodes that are not shown; and for
   each node how many of its callees, direct and indirect, are not shown under it.
   `unfolded` holds nodes that are shown although they are cheap. The functions that were executed
   below a cost centre follow, where its id is among filters.unfolded. */
export function visible(model, filters, unfolded) {
  const { candidates, through } = allowed(model, filters);
  const restricted = filters.only !== null || filters.from !== null;
  const all = filters.all || (restricted && candidates.size <= FEW);
  const first = new Set(model.run.shown);
  const special = positions(model, [filters.only, filters.from, ...filters.collapsed]
    .filter((id) => id !== null));
  const shown = new Set([...candidates].filter((node) =>
    all || first.has(node) || unfolded.has(node) || special.has(node)));
  const nodes = [...shown].sort((a, b) => a - b);
  const opened = positions(model, filters.unfolded);
  const functions = nodes.filter((node) => opened.has(node))
    .flatMap((node) => functionsBelow(model, node));
  return {
    nodes: [...nodes, ...functions],
    links: [...links(model, shown, through), ...functions.map((number) =>
      ({ from: executed(model, number).caller, to: number, edge: null }))],
    below: below(model, shown, opened),
  };
}

/* The lines between shown nodes; those through nodes that are not shown lead only through
   `through`. */
export function links(model, shown, through) {
  const found = [];
  for (const from of shown) {
    const direct = new Map(model.callees[from].map((edge) => [model.edges[edge].to, edge]));
    const ends = reached(model, from, "callees", "to", (node) =>
      node !== from && (shown.has(node) || !through.has(node)));
    for (const to of ends) {
      if (to !== from && shown.has(to)) found.push({ from, to, edge: direct.get(to) ?? null });
    }
  }
  return found;
}

/* Whether a node is the end of main and takes next to no time. */
export function isIdleEnd(model, node) {
  return model.nodes[node].sync === "end"
    && model.score(node, "time") <= NEGLIGIBLE * model.score(model.root, "time");
}

function below(model, shown, opened) {
  const counts = new Map();
  for (const node of shown) {
    const folded = opened.has(node) ? 0 : functionsBelow(model, node).length;
    if (folded) counts.set(node, folded);
    const hidden = reached(model, node, "callees", "to", (other) =>
      other !== node && shown.has(other));
    let count = 0;
    for (const other of hidden) if (!shown.has(other) && !isIdleEnd(model, other)) count += 1;
    if (count) counts.set(node, count);
  }
  return counts;
}
