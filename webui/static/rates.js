/* The figures by which losses are priced: those of the run, or of the chosen Machine, with
   what the reader has set in their place. */

/* The Machine that is chosen, with null for a figure that it lacks; the run's own rates where
   none is chosen. */
export function chosenMachine(run, name) {
  return run.machines.find((machine) => machine.name === name) ?? run.rates;
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
