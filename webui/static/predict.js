/* What a node model says of a run that nobody made: the time of every call chain, under the BSP
   model, and the same at other numbers of processes. As bsplib.profiler.models.nodes.predicted. */

import { awayFrom, valueOf } from "./laws.js";

const AROUND = 33; // numbers of processes that are tried near the best power of two

/* Seconds for bytes on a curve [bytes, seconds]; behind its last knot the last line goes on. */
function onCurve([knots, seconds], bytes) {
  const last = knots.length - 1;
  if (bytes <= knots[0]) return seconds[0];
  let right = knots.findIndex((knot) => bytes <= knot);
  if (right < 0) right = last;
  const slope = (seconds[right] - seconds[right - 1]) / (knots[right] - knots[right - 1]);
  if (bytes <= knots[last]) return seconds[right - 1] + (bytes - knots[right - 1]) * slope;
  return seconds[last] + (bytes - knots[last]) * Math.max(slope, 0);
}

/* The entries of the nearest numbers of processes that were measured, with their shares. */
function around(measured, p) {
  const above = measured.findIndex((entry) => entry.p > p);
  if (above === 0) return [[measured[0], 1]];
  if (above < 0) return [[measured.at(-1), 1]];
  const [one, two] = [measured[above - 1], measured[above]];
  const share = (p - one.p) / (two.p - one.p);
  return [[one, 1 - share], [two, share]];
}

/* Seconds on a curve; 0 where the Machine has none. */
function onAny(curve, amount) {
  return curve ? onCurve(curve, amount) : 0;
}

/* What a superstep of a chain moves, which is new to a process or is not; as
   bsplib.profiler.models.nodes.moves. */
const COUNTS = ["gets", "messages", "objects", "unpickled"];
const PARTS = ["placed", "fetched", "put", "got", "copied", "pickled", ...COUNTS];

function relationOf({ parts }, h, calls, apart, [left, cold]) {
  const made = Math.max(calls, h > 0 ? 1 : 0);
  const found = { h, calls: made, apart, cold: cold * h, fresh: h > 0 ? left : 0 };
  for (const name of PARTS) found[name] = (parts[name] ?? 0) * (COUNTS.includes(name) ? made : h);
  return found;
}

/* The time of an exchange by its calls, divided by that of one by messages. */
function byCalls(entry, { h, put, got, copied }) {
  let found = 1;
  for (const [curve, bytes, pattern] of [[entry.puts, put, "exchange"],
    [entry.gets, got, "exchange"], [entry.collectives, copied, "all-to-all"]]) {
    const messages = entry.patterns[pattern];
    if (curve && messages && bytes > 0) {
      const whole = onCurve(messages, h) || Infinity; // of no time there is no ratio
      found += (onCurve(curve, bytes) - onCurve(messages, bytes)) / whole;
    }
  }
  return Math.max(found, 0);
}

const OF_ONE_CALL = ["exchange", "ping-pong", "all-to-one"];

/* What the calls of put, get and send take beyond those that a pattern needs, and pickles. */
function callSeconds(entry, pattern, { calls, gets, messages, objects, unpickled, pickled }) {
  const own = OF_ONE_CALL.includes(pattern) ? 1 : Math.max(entry.p - 1, 1);
  const beyond = (count, seconds) => Math.max(count - own, 0) * seconds;
  return beyond(calls, entry.call) + beyond(gets, entry.get) + beyond(messages, entry.message)
    + objects * entry.pickle + unpickled * entry.unpickle + pickled * entry.pickle_byte;
}

/* What code takes that runs for the first time. */
function firstSeconds(entry, { fresh, put, got, placed, fetched, copied }) {
  if (!entry.first_messages || put + got + placed + fetched > 0) return onAny(entry.first, fresh);
  const ofCollectives = entry.first_collectives && copied > 0;
  return onCurve(ofCollectives ? entry.first_collectives : entry.first_messages, fresh);
}

/* What an exchange takes more where the caches hold other data, some time after the last sync. */
function evictedSeconds(entry, { h, put, got, copied, apart }) {
  if (!entry.evicted) return 0;
  const part = entry.evicting ? Math.min(apart / entry.evicting, 1) : 1;
  if (!entry.evicted_puts) return onCurve(entry.evicted, h) * part;
  const others = onCurve(entry.evicted, Math.max(h - put - copied - got, 0));
  const ofCollectives = entry.evicted_collectives;
  if (!ofCollectives) return (others + onCurve(entry.evicted_puts, put + copied)) * part;
  const collected = copied > 0 ? onCurve(ofCollectives, copied) : 0;
  return (others + onCurve(entry.evicted_puts, put) + collected) * part;
}

/* What a superstep takes beyond an empty one; as seconds of bsplib.machine.measured.Measured. */
function transferred(entry, pattern, relation) {
  if (relation.h <= 0 && relation.calls <= 0) return 0;
  const curve = entry.patterns[pattern];
  const moved = curve ? onCurve(curve, relation.h) * byCalls(entry, relation) : entry.empty;
  return Math.max(moved, entry.empty) - entry.empty + callSeconds(entry, pattern, relation)
    + onAny(entry.cold, relation.cold) + onAny(entry.placed, relation.placed)
    + onAny(entry.fetched, relation.fetched) + firstSeconds(entry, relation)
    + evictedSeconds(entry, relation);
}

/* The price of some supersteps with an h-relation in all, each after a computation of some seconds:
   [transfers, supersteps]. A probed Machine has its times; see
   bsplib.profiler.models.nodes.predicted. */
function communication({ measured, g, l }, { pattern, moves }, p, h, supersteps, computed, calls) {
  if (!measured?.length) return [h * g, supersteps * l];
  if (supersteps <= 0) return [0, 0];
  const apart = computed / supersteps;
  const steps = moves.new.slice(0, Math.floor(supersteps)).map((each) => [each, 1]);
  steps.push([[0, 0], supersteps - steps.length]);
  let [transfers, empty] = [0, 0];
  for (const [entry, share] of around(measured, p)) {
    for (const [step, count] of steps) {
      const relation = relationOf(moves, h / supersteps, calls / supersteps, apart, step);
      transfers += share * count * transferred(entry, pattern ?? "all-to-all", relation);
    }
    empty += share * supersteps * (entry.empty + onAny(entry.apart, apart * 1e9));
  }
  return [transfers, empty];
}

/* How much longer a computation takes that p processes do; as ratio_at of
   bsplib.profiler.prices.ReplayPrices. */
export function slowed(slowdowns, p) {
  if (!slowdowns?.length) return 1;
  const [last, most] = slowdowns.at(-1);
  if (p >= last) return most * (p / last);
  const above = slowdowns.findIndex(([count]) => count > p);
  if (above === 0) return slowdowns[0][1];
  const [[one, from], [two, to]] = slowdowns.slice(above - 1, above + 1);
  return from + (to - from) * (p - one) / (two - one);
}

/* The bytes that a process uses at most because of the sizes of the data; 0 if not known. */
function memoryAt({ memory }, point, away) {
  if (!memory) return 0;
  const found = valueOf(memory.law, point, away);
  return found.why ? 0 : found.high;
}

/* What a predicted run uses of memory, and how much longer than its formulas say computation may
   take for it: { here, inRuns, slowdown }. As bsplib.profiler.models.nodes.memory. */
export function memoryUse(data, point, { measured }, away = awayFrom(data.variables, point)) {
  const [here, inRuns] = [memoryAt(data, point, away), data.memory?.in_runs ?? 0];
  if (here <= inRuns || !measured?.length) return { here, inRuns, slowdown: 1 };
  const byteSeconds = ({ passes }, bytes) => {
    const used = Math.max(bytes, passes[0][0]);
    return onCurve(passes, used) / used;
  };
  const slowdown = around(measured, point.p).reduce((sum, [entry, share]) => sum + share * (entry.passes
    ? Math.max(byteSeconds(entry, here) / byteSeconds(entry, inRuns), 1) : 1), 0);
  return { here, inRuns, slowdown };
}

const NONE = { value: 0, low: 0, high: 0, why: "" };

/* { comp, comm, sync, total } in seconds, low and high, why it is not all of it, and the bytes of
   the mean h-relation. */
function chainAt(chain, point, rates, away, slowdown) {
  const { laws } = chain;
  const rule = rates.rule === "sum" ? "h_sum" : "h";
  const used = ["comp", rule, "supersteps", "calls"].map((quantity) =>
    (laws[quantity] ? valueOf(laws[quantity], point, away) : NONE));
  const price = (end, slower = 1) => {
    const [comp, h, supersteps, calls] = used.map((value) => (value.why ? 0 : value[end]));
    const computed = comp * slower * rates.ratio * slowed(rates.slowdowns, point.p);
    return [computed, ...communication(rates, chain, point.p, h, supersteps, computed, calls)];
  };
  const sum = (parts) => parts.reduce((all, part) => all + part, 0);
  const [comp, comm, sync] = price("value");
  const unknown = used.find(({ why }) => why) ?? null;
  const [h, supersteps] = [valueOf(laws.h, point, away), used[2]];
  return {
    exchanged: h.why || supersteps.why || !supersteps.value ? 0 : h.value / supersteps.value,
    comp, comm, sync, total: comp + comm + sync, low: sum(price("low")),
    high: unknown ? Infinity : sum(price("high", slowdown)), refused: unknown,
  };
}

/* l / g by some rates, divided by that of the runs, which chose the stages of their broadcasts;
   1 where it is not known. */
function shiftOf(own, { g, l }) {
  return [own.g, own.l, g, l].every((figure) => figure > 0) ? (l / g) / (own.l / own.g) : 1;
}

/* The prediction at a point: { point, chains (in the order of the model's), total, low, high,
   refused: Map(position of the cost centre -> why it is not all counted), memory, outside: the
   seconds in which processes start and end as { value, low, high }, null if they are not known }. */
export function predict(data, point, rates) {
  const away = { ...awayFrom(data.variables, point), shift: shiftOf(data.rates, rates) };
  const memory = memoryUse(data, point, rates, away);
  const chains = data.chains.map((chain) => chainAt(chain, point, rates, away, memory.slowdown));
  const refused = new Map();
  chains.forEach((each, number) => {
    const leaf = data.chains[number].nodes.at(-1);
    if (each.refused && !refused.has(leaf)) refused.set(leaf, each.refused);
  });
  const sum = (name) => chains.reduce((all, each) => all + each[name], 0);
  return {
    point, chains, refused, total: sum("total"), low: sum("low"), high: sum("high"),
    distance: away.distance, memory,
    outside: rates.isHost && data.outside ? valueOf(data.outside, point, away) : null,
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
