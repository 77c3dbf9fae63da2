/* The texts of the graph's tooltips. */

import { about, executed, executedText } from "./executed.js";
import { count, label, pathTitle, place, scoreText, summary } from "./format.js";
import { METRICS } from "./terms.js";

function costs({ cost }) {
  return Object.keys(METRICS).map((metric) => `${METRICS[metric]} ${summary(cost[metric], metric)}`);
}

/* What the tooltip of a node says: name, place, the chosen score, all costs. */
export function nodeText(model, node, path) {
  if (executed(model, node) !== null) return executedText(model, node);
  const data = model.nodes[node];
  return [label(data), data.under, place(data), `${pathTitle(path)}: ${scoreText(model.score(node, path), path)}`,
    count(data.count, "superstep"), ...costs(data)].filter(Boolean);
}

/* What the tooltip of a line says: the part of the callee that came through the caller. */
export function lineText(model, { from, to, edge }, path) {
  const title = `${label(about(model, from))} → ${label(about(model, to))}`;
  if (executed(model, to) !== null) {
    return [title, executed(model, from) === null ? "Executed in the supersteps that end here, from samples."
      : "A call, from samples."];
  }
  if (edge === null) return [title, "Calls through nodes that are not shown."];
  const data = model.edges[edge];
  return [title, `${pathTitle(path)}: ${scoreText(model.edgeScore(edge, path), path)}`,
    count(data.count, "superstep"), ...costs(data)];
}
