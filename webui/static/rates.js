/* The figures by which losses are priced: those of the run, or of the chosen Machine, with
   what the reader has set in their place. */

/* g in s per byte, l in s per superstep, the rule for h, and ratio: the time of a computation
   there divided by the recorded time. */
export function ratesOf(run, { machine, g, l, speed }) {
  const chosen = run.machines.find(({ name }) => name === machine) ?? run.rates;
  return {
    rule: chosen.rule, source: chosen.source ?? chosen.name, note: chosen.note ?? "",
    g: g ?? chosen.g ?? 0, l: l ?? chosen.l ?? 0,
    ratio: speed === null ? chosen.ratio ?? 1 : 1 / speed,
  };
}
