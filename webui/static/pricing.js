/* What a run costs and loses at the rates that the reader chooses. This is the same
   computation as in profiler/losses.py, on the books that the server sends once. */

const NS = 1e-9;

/* The costs of a run and its greatest loss. `rates` are
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
  return { cost, lost, nodes, edges, origins, ...lossChain(run, origins, lost) };
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
    nothing());
  cells.group.forEach((group, i) => {
    if (!booked[group]) return;
    const origin = origins[cells.origin[i]];
    origin.comp += rates.ratio * cells.w[i] * NS;
    origin.comm += rates.g * h[i];
    origin.sync += rates.l * cells.steps[i];
    origin.lostComp += rates.ratio * cells.wLost[i] * NS;
    origin.lostComm += rates.g * hLost[i];
  });
  for (const { origin, lost } of waits) {
    if (origin >= 0) origins[origin].lostGroups += lost;
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
    lost: booked[partitions.parent[number]]
      ? Math.max(0, total[group] - work[number] / size[partitions.parent[number]]) : 0,
  }));
  return { booked, waits: [...waited, ...waits.map((wait) => pricedWait(wait, rates))] };
}

/* A loss whose sub-groups the server has chosen. */
function pricedWait({ origin, w, steps, h }, rates) {
  const lost = rates.ratio * w * NS + rates.l * steps + rates.g * h[rates.rule];
  return { origin, lost: Math.max(0, lost) };
}

/* What is booked at the origins, in sums: { nodes, edges, chain, chainScores }. */
export function summedUp(run, values) {
  const nodes = run.nodes.map(() => 0);
  const edges = run.edges.map(() => 0);
  run.origins.forEach((origin, number) => {
    for (const node of origin.nodes) nodes[node] += values[number];
    for (const edge of origin.edges) edges[edge] += values[number];
  });
  const booked = values.map((value) => ({ lost: value, cost: value }));
  const { chain, chainLost } = lossChain(run, booked, nodes[run.root]);
  return { nodes, edges, chain, chainScores: chainLost };
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
