/* The runs of all traces in words, for the pickers. */

import { processes, seconds } from "./format.js";

/* A run of a trace in words; the time of a run that has not been read is not known. */
export function runText({ title, nprocs, elapsed_s: elapsed, complete }) {
  return [`${title}: ${processes(nprocs)}`, elapsed === null ? null : seconds(elapsed),
    complete ? null : "not complete"].filter(Boolean).join(", ");
}

/* The runs with which a run can be compared, by the key with which the address names them. */
export function othersOf(traces, { trace, run }) {
  return traces.flatMap(({ id, name, runs }) => runs.map((each, number) => ({
    key: `${id}.${number}`, trace: id, number, text: `${name}, ${runText(each)}`,
  }))).filter(({ key }) => key !== `${trace}.${run}`);
}

/* The key of the one that is compared with: the chosen one, else the one of the same number in
   another trace, or the only other one; null where there is a choice to make. */
export function comparedOf(others, { trace, run, compared }) {
  const chosen = others.find(({ key }) => key === compared);
  const same = others.find((other) => other.trace !== trace && other.number === run);
  return (chosen ?? same ?? (others.length === 1 ? others[0] : null))?.key ?? null;
}
