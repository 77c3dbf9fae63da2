/* What a node model says of a run that nobody made: the time of every call chain, under the BSP
   model, and the same at other numbers of processes. As profiler.models.nodes.predicted. */

import { awayFrom, valueOf } from "./laws.js";

const QUANTITIES = ["comp", "h", "supersteps"];
const AROUND = 33; // numbers of processes that are tried near the best power of two

/* { comp, comm, sync, total } in seconds, low and high, and why it is not all of it. */
function chainAt({ laws }, point, rates, away) {
  const found = { low: 0, high: 0, refused: null };
  const parts = QUANTITIES.map((quantity) => {
    const rule = quantity === "h" && rates.rule === "sum" ? "h_sum" : quantity;
    const factor = { comp: rates.ratio, h: rates.g, supersteps: rates.l }[quantity];
    const value = valueOf(laws[rule], point, away);
    if (value.why) found.refused ??= value;
    found.low += value.low * factor;
    found.high += value.why ? Infinity : value.high * factor;
    return value.value * factor;
  });
  const [comp, comm, sync] = parts;
  return { comp, comm, sync, total: comp + comm + sync, ...found };
}

/* The prediction at a point: { point, chains (in the order of the model's), total, low, high,
   refused: Map(position of the cost centre -> why it is not all counted) }. */
export function predict(data, point, rates) {
  const away = awayFrom(data.variables, point);
  const chains = data.chains.map((chain) => chainAt(chain, point, rates, away));
  const refused = new Map();
  chains.forEach((each, number) => {
    const leaf = data.chains[number].nodes.at(-1);
    if (each.refused && !refused.has(leaf)) refused.set(leaf, each.refused);
  });
  const sum = (name) => chains.reduce((all, each) => all + each[name], 0);
  return {
    point, chains, refused, total: sum("total"), low: sum("low"), high: sum("high"),
    distance: away.distance,
  };
}

/* The seconds of each cost centre. */
export function leavesOf(data, prediction) {
  const seconds = new Map();
  prediction.chains.forEach(({ total }, number) => {
    const leaf = data.chains[number].nodes.at(-1);
    seconds.set(leaf, (seconds.get(leaf) ?? 0) + total);
  });
  return seconds;
}

/* The cost centre whose time grows most from one prediction to another; null if none grows. */
export function mostGrown(data, before, after) {
  const [first, then] = [leavesOf(data, before), leavesOf(data, after)];
  let [cause, most] = [null, 0];
  for (const [leaf, seconds] of then) {
    if (seconds - first.get(leaf) > most) [cause, most] = [leaf, seconds - first.get(leaf)];
  }
  return cause;
}

/* The same point with other numbers of processes: { predictions (ascending), rollOff: the number
   from which more do not help, or null, cause: the cost centre that causes it, or null }. */
export function scaling(data, prediction, rates) {
  const asked = prediction.point.p;
  const found = new Map();
  const at = (p) => {
    if (!found.has(p)) found.set(p, predict(data, { ...prediction.point, p }, rates));
    return found.get(p);
  };
  for (let p = 1; p <= Math.max(data.most_processes, asked); p *= 2) at(p);
  at(asked);
  const hasHoles = (one) => [...one.refused.keys()].some((leaf) => !prediction.refused.has(leaf));
  const usable = () => [...found.keys()].filter((p) => !hasHoles(found.get(p)))
    .sort((a, b) => a - b);
  const bestOf = (counts) => counts.reduce((best, p) =>
    (best === null || at(p).total < at(best).total ? p : best), null);
  const counts = usable();
  const most = counts.at(-1) ?? 0;
  let best = bestOf(counts) ?? asked;
  if (best > 1 && best < most) {
    const low = Math.max(Math.floor(best / 2), 1);
    for (let step = 0; step < AROUND; step += 1) {
      at(Math.round(low * (2 * best / low) ** (step / (AROUND - 1))));
    }
    best = bestOf(usable());
  }
  const rollsOff = counts.length > 0 && best < most;
  const twice = rollsOff ? predict(data, { ...prediction.point, p: 2 * best }, rates) : null;
  return {
    predictions: [...found.keys()].sort((a, b) => a - b).map(at),
    rollOff: rollsOff ? best : null,
    cause: rollsOff ? mostGrown(data, at(best), twice) : null,
  };
}

/* How much faster a prediction is than with one process; null where that is not known. */
export function speedup({ predictions: [first] }, { total }) {
  return first.point.p === 1 && first.refused.size === 0 && total > 0 ? first.total / total : null;
}
