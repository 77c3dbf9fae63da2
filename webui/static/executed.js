/* The functions that were executed below cost centres, from samples: they never sync, so they are
   no nodes of the call graph. They are numbered after its nodes, each after its caller. */

import { seconds } from "./format.js";
import { SAMPLED } from "./terms.js";

const MOST_PROCESSES = 16; // more are summed up in a tooltip

const listed = (model) => model.run.executed ?? [];

/* The function of a number; null for a node of the call graph. */
export function executed(model, number) {
  return listed(model)[number - model.nodes.length] ?? null;
}

/* What is known of a node or a function: its name, file and line at least. */
export function about(model, number) {
  return model.nodes[number] ?? executed(model, number);
}

/* The node that a number belongs to: of a function, its cost centre. */
export function nodeOf(model, number) {
  return executed(model, number)?.centre ?? number;
}

/* The numbers of the functions below a cost centre. */
export function below(model, centre) {
  return listed(model).flatMap((each, at) => (each.centre === centre ? [model.nodes.length + at] : []));
}

/* The callers of a function, up to its cost centre. */
export function callersOf(model, number) {
  const found = [];
  for (let each = executed(model, number); each !== null; each = executed(model, each.caller)) {
    found.push(each.caller);
  }
  return found;
}

/* What a function called, directly and indirectly. */
export function calledBy(model, number) {
  const { centre } = executed(model, number);
  return below(model, centre).filter((other) => callersOf(model, other).includes(number));
}

function processes(each) {
  if (each.processes.length <= MOST_PROCESSES) {
    return each.processes.map((value, pid) => `process ${pid}: ${seconds(value)}`);
  }
  const most = each.processes.reduce((a, b) => Math.max(a, b), 0);
  return [`process ${each.processes.indexOf(most)} most: ${seconds(most)}`];
}

/* What the tooltip of a function says: what it took, by what it did and by process. */
export function executedText(model, number) {
  const each = executed(model, number);
  const parts = Object.entries(SAMPLED).filter(([part]) => each.parts[part] > 0)
    .map(([part, title]) => `${seconds(each.parts[part])} ${title}`);
  return [each.name, `${each.file}:${each.line}`,
    `${seconds(each.seconds)} with all that it called, average of the processes, from samples`,
    parts.join(", "), ...processes(each)];
}
