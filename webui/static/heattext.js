/* What a cell of the heat map holds, in words. */

import { html } from "./dom.js";
import { bytes, integer, label, pathTitle, seconds } from "./format.js";
import { processRange } from "./names.js";
import { PARTS } from "./terms.js";

function supersteps(heat, column) {
  const [first, last] = [heat.first[column], heat.last[column]];
  if (first === last) return `Superstep ${integer(first)}`;
  return `Supersteps ${integer(first)} to ${integer(last)} (longest: ${integer(heat.longest[column])})`;
}

function centre(heat, column, model) {
  const position = model.indexOf(heat.centres[column]);
  return position === null ? "" : label(model.nodes[position]);
}

/* Whether the processes of a cell wait for others most of the time. */
export function isWaiting(heat, cell) {
  const idle = heat.amount("idle", cell);
  return idle > 0 && 2 * idle >= heat.amount("time", cell);
}

/* The parts of the account in a cell, the greatest first; they are known to half a percent. */
function spent({ parts }, cell) {
  /** @type {(part: string) => number} */
  const amountOf = (part) => parts[part][cell];
  const total = PARTS.reduce((sum, part) => sum + amountOf(part), 0);
  return PARTS.map((part) => ({ part, share: amountOf(part) / (total || 1) }))
    .filter(({ share }) => share >= 0.005).sort((a, b) => b.share - a.share)
    .map(({ part, share }) => `${pathTitle(part)} ${(100 * share).toFixed(0)}%`).join(", ");
}

/* The supersteps, processes, cost centre, times, h and loss of a cell: elements. On the axis
   of time a cell is a part of a superstep, or of several. */
export function describeCell({ heat, column, row }, model, axis) {
  const who = processRange(model.run.run.hosts, ...heat.processes(row));
  const cell = row * heat.columns + column;
  const [first, last] = heat.processes(row);
  const [from, to] = heat.edges.slice(column, column + 2);
  const within = axis === "time" ? `of ${seconds(to - from)} at ${seconds(from)}: ` : "";
  return [
    html("b", {}, `${supersteps(heat, column)}, ${who}`),
    html("span", {}, centre(heat, column, model)),
    isWaiting(heat, cell) ? html("span", {}, "waits: a click goes to the process and line that it waits for") : "",
    html("span", {}, within + spent(heat, cell)),
    html("span", {}, `h ${bytes(heat.amount("h", cell))}, loss by ${first === last ? "it" : "them"} ${seconds(heat.amount("loss", cell) / heat.nprocs)}`),
    axis === "time" ? "" : html("span", { class: "quiet" },
      `from ${seconds(heat.began_s[column])} to ${seconds(heat.finished_s[column])}`),
  ];
}
