/* The Machine on which the run is shown: its figures, or what the reader has set in their place. */

/* The Machine that is chosen, with null for a figure that it lacks; the run's own rates where
   none is chosen. */
export function chosenMachine(run, name) {
  return run.machines.find((machine) => machine.name === name) ?? run.rates;
}

/* What the reader has chosen: { machine, g, l, speed }, null for the run's or the Machine's own.
   isSaved: a saved page has no server that could time the run anew by other figures. */
export function chosenFigures(run, { machine, g, l, speed }, isSaved) {
  const known = chosenMachine(run, machine).name ?? null;
  return isSaved ? { machine: known, g: null, l: null, speed: null } : { machine: known, g, l, speed };
}

/* g in s per byte, l in s per superstep, the rule for h, and ratio: the time of a computation
   there divided by the recorded time. What a Machine lacks counts as 0, and its ratio as 1. */
export function ratesOf(run, { machine, g, l, speed }) {
  const chosen = chosenMachine(run, machine);
  return {
    rule: chosen.rule, source: chosen.title ?? chosen.source, note: chosen.note,
    g: g ?? chosen.g, l: l ?? chosen.l ?? 0,
    ratio: speed ? 1 / speed : chosen.ratio ?? 1,
  };
}
