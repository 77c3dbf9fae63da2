/* What a run costs and loses at the rates that the reader chooses. This is the same
   computation as in profiler/losses.py, on the books that the server sends once. */

import { seconds } from "./format.js";

const NS = 1e-9;

/* The costs of a run, its greatest loss, and the verdict on it. `rates` are
   { g, l, rule, ratio }: seconds per byte, seconds per superstep, "max" or "sum", and the
   time of a computation divided by the recorded time. All results are in seconds. */
export function price(run, rates) {
  const { books } = run;
  const origins = bookedAtOrigins(books, rates, run.origins.length);
  const nodes = run.nodes.map(nothing);
  const edges = run.edges.map(nothing);
  run.origins.forEach((origin, number) => {
    for (const node of origin.nodes) add(nodes[node], origins[number]);
    for (const edge of origin.edges) add(edges[edge], origins[number]);
  });
  const { cost, lost } = nodes[run.root];
  const path = lossChain(run, origins, lost);
  const whole = { cost, lost, rule: rates.rule };
  return { cost, lost, nodes, edges, ...path, verdict: judged(run, origins, whole, path) };
}

const nothing = () =>
  ({ cost: 0, lost: 0, comp: 0, comm: 0, sync: 0, lostComp: 0, lostComm: 0, lostGroups: 0 });

function add(sum, part) {
  for (const name in sum) sum[name] += part[name];
}

/* What is booked at each origin: the groups that cost most of those that ran side by side. */
function bookedAtOrigins(books, rates, count) {
  const { cells } = books;
  const h = cells.h[rates.rule];
  const hLost = cells.hLost[rates.rule];
  const { booked, waits } = chosenGroups(books, rates);
  const origins = Array.from({ length: count }, () =>
    ({ ...nothing(), steps: 0, waits: [] }));
  cells.group.forEach((group, i) => {
    if (!booked[group]) return;
    const origin = origins[cells.origin[i]];
    origin.comp += rates.ratio * cells.w[i] * NS;
    origin.comm += rates.g * h[i];
    origin.sync += rates.l * cells.steps[i];
    origin.steps += cells.steps[i];
    origin.lostComp += rates.ratio * cells.wLost[i] * NS;
    origin.lostComm += rates.g * hLost[i];
  });
  for (const { origin, lost, who } of waits) {
    if (origin < 0) continue;
    origins[origin].lostGroups += lost;
    origins[origin].waits.push({ lost, who });
  }
  for (const origin of origins) {
    origin.cost = origin.comp + origin.comm + origin.sync;
    origin.lost = origin.lostComp + origin.lostComm + origin.lostGroups;
  }
  return origins;
}

/* Which groups are booked, and what the processes of their parents wait for them. */
function chosenGroups({ groups, partitions, cells, waits }, rates) {
  const { parent, size, partition } = groups;
  const total = new Float64Array(parent.length);
  cells.group.forEach((group, i) => {
    total[group] += rates.ratio * cells.w[i] * NS + rates.l * cells.steps[i]
      + rates.g * cells.h[rates.rule][i];
  });
  const below = parent.map(() => []);
  partitions.parent.forEach((group, number) => below[group].push(number));
  const costliest = partitions.parent.map(() => -1);
  const work = partitions.parent.map(() => 0);
  // A group comes after its parent: backwards, its sub-groups are complete before it.
  for (let group = parent.length - 1; group >= 0; group -= 1) {
    for (const number of below[group]) total[group] += total[costliest[number]];
    const number = partition[group];
    if (number < 0) continue;
    work[number] += total[group] * size[group];
    if (costliest[number] < 0 || total[group] >= total[costliest[number]]) {
      costliest[number] = group;
    }
  }
  const booked = parent.map(() => false);
  booked[0] = true;
  for (const group of [...costliest].sort((a, b) => a - b)) booked[group] = booked[parent[group]];
  const waited = costliest.map((group, number) => ({
    origin: partitions.origin[number],
    who: groups.who[group],
    lost: booked[partitions.parent[number]]
      ? Math.max(0, total[group] - work[number] / size[partitions.parent[number]]) : 0,
  }));
  return { booked, waits: [...waited, ...waits.map((wait) => pricedWait(wait, rates))] };
}

/* A loss whose sub-groups the server has chosen. */
function pricedWait({ origin, w, steps, h, who }, rates) {
  const lost = rates.ratio * w * NS + rates.l * steps + rates.g * h[rates.rule];
  return { origin, who, lost: Math.max(0, lost) };
}

/* From the root by the greatest loss that came through the chain so far: `chain`, and
   `chainLost`, what is lost through it up to each of its nodes. */
function lossChain({ origins, root }, booked, lost) {
  if (lost <= 0) return { chain: [], chainLost: [] };
  const chain = [root];
  const chainLost = [lost];
  let through = origins.map((_, number) => number);
  for (;;) {
    const depth = chain.length;
    const onward = new Map();
    through = through.filter((number) =>
      origins[number].chain.length > depth && origins[number].chain[depth - 1] === chain.at(-1));
    for (const number of through) {
      const next = origins[number].chain[depth];
      const sum = onward.get(next) ?? { lost: 0, cost: 0 };
      sum.lost += booked[number].lost;
      sum.cost += booked[number].cost;
      onward.set(next, sum);
    }
    if (onward.size === 0) return { chain, chainLost };
    const greatest = [...onward].reduce((best, entry) =>
      entry[1].lost > best[1].lost
        || (entry[1].lost === best[1].lost && entry[1].cost > best[1].cost) ? entry : best);
    chain.push(greatest[0]);
    chainLost.push(greatest[1].lost);
  }
}

const PART = { comp: "lostComp", comm: "lostComm", groups: "lostGroups", sync: "sync" };

/* At most five sentences; the greatest loss first, and waiting for a core last. */
function judged(run, origins, { cost, lost, rule }, path) {
  const { books } = run;
  const { verdict } = books;
  if (cost === 0) return { balanced: true, sentences: [sentence(verdict.nothing, 0, 1)] };
  const spots = new Map();
  books.spots.forEach((spot, number) => {
    if (!spots.has(spot)) spots.set(spot, { ...nothing(), steps: 0, waits: [] });
    const parts = spots.get(spot);
    const { waits, ...sums } = parts;
    add(sums, origins[number]);
    Object.assign(parts, sums, { waits: [...waits, ...origins[number].waits] });
  });
  const worth = (amount) => amount >= verdict.leastShare * cost;
  const core = books.waiting && worth(books.waiting.seconds)
    ? [sentence(books.waiting.text, books.waiting.seconds, cost, { kind: "waiting for a core" })]
    : [];
  const entries = books.entries
    .filter((entry) => !entry.rule || entry.rule === rule)
    .map((entry) => {
      const parts = spots.get(entry.spot);
      return { ...entry, ...parts, places: 1, amount: parts[PART[entry.source]] };
    });
  const losses = stepsAsOne(entries, verdict)
    .filter(({ amount }) => worth(amount))
    .sort((a, b) => b.amount - a.amount)
    .slice(0, verdict.mostSentences - core.length)
    .map((entry) => sentence(entry.text, entry.amount, cost, entry));
  const first = losses.length ? losses : [aboutTheRun(run, cost, lost, path)];
  return { balanced: first[0].kind === "balanced", sentences: [...first, ...core] };
}

/* The places with too many supersteps as one entry: they have one cause, and one sentence. */
function stepsAsOne(entries, { manySteps }) {
  const isOfSteps = ({ source }) => source === "sync";
  const rest = entries.filter((entry) => !isOfSteps(entry));
  const places = entries.filter(isOfSteps)
    .filter(({ steps, sync, comp, comm }) => steps >= manySteps && sync > comp + comm)
    .sort((a, b) => b.amount - a.amount);
  if (places.length === 0) return rest;
  const total = (name) => places.reduce((sum, entry) => sum + entry[name], 0);
  return [...rest,
    { ...places[0], amount: total("amount"), steps: total("steps"), places: places.length }];
}

/* The sentence about a run in which no place loses much: it is balanced, or the losses are
   spread below the lowest function of the path through which most of them came. */
function aboutTheRun(run, cost, lost, { chain, chainLost }) {
  const { verdict } = run.books;
  if (lost < verdict.balancedShare * cost) return sentence(verdict.balanced, lost, cost);
  const less = chainLost.findIndex((through) => through < verdict.mostOfIt * lost);
  const node = chain.at(less < 0 ? -1 : less - 1);
  const waits = [{ lost, who: run.nodes[node].name }];
  return sentence(verdict.spread, lost, cost, { kind: "spread", node, waits });
}

const ABOUT_THE_RUN =
  { kind: "balanced", node: null, superstep: null, waits: [], steps: 0, places: 1 };

function sentence(template, amount, cost, about = {}) {
  const { kind, node, superstep, waits, steps, places } = { ...ABOUT_THE_RUN, ...about };
  const slowest = waits.reduce((best, wait) => (wait.lost > best.lost ? wait : best),
    { lost: -1, who: "" });
  const [part, unit] = seconds(amount).split(" ");
  const whole = seconds(cost);
  const figures = {
    lost: unit === whole.split(" ")[1] ? part : `${part} ${unit}`,
    amount: `${part} ${unit}`,
    cost: whole,
    share: `${rounded((100 * amount) / cost)}%`,
    who: slowest.who,
    count: steps === 1 ? "1 superstep" : `${steps} supersteps`,
    most: places > 1 ? ", most of them" : "",
  };
  // As str.format of Python: braces in names are doubled.
  const text = template.replace(/\{\{|\}\}|\{(\w+)\}/g, (match, name) =>
    (name ? figures[name] : match[0]));
  return { text, seconds: amount, kind, node, superstep };
}

/* Half to even, as Python rounds. */
function rounded(value) {
  const low = Math.floor(value);
  if (value - low !== 0.5) return Math.round(value);
  return low % 2 ? low + 1 : low;
}
