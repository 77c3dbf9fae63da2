/* A loaded run, priced by some rates: what every view shows. Nodes and edges are named by
   their positions in `nodes` and `edges`, as the server numbers them. */

import { isInSeconds } from "./format.js";
import { price, summedUp } from "./pricing.js";
import { PATHS } from "./terms.js";

const PALE = 0.1; // of the whole: where no cost centre has so much, none is as red as can be
const OF_FUNCTIONS = 0.7; // the reddest shade of a function: what it calls stands out

function lists(length) {
  return Array.from({ length }, () => []);
}

function measured({ max, avg }, measure) {
  const imbalance = max - avg;
  const relative = max ? imbalance / max : 0;
  switch (measure) {
    case "abs": return max;
    case "imb": return imbalance;
    case "rel": return relative;
    default: return imbalance * relative; // weighted
  }
}

const PARTS = new Map(PATHS.map((path) => [path, path.split("-")]));

/* The score of a cost ({ count, cost }) of a node or an edge in one of the seventeen paths. */
function costScore(part, path) {
  if (path === "sync") return part.count;
  const [metric, measure] = PARTS.get(path);
  return measured(part.cost[metric], measure);
}

/* The model of a run's data; reprice(rates) has to be called before it is shown.

   { run, nodes, edges, root, callers, callees (positions of edges, by node), indexOf(id),
     edgeOf(ids), reprice(rates), rates, priced, score(node, path), edgeScore(edge, path),
     shade(node, path), scale(path), chain(path), chainScores(path), pie(node, path),
     weight(edge, path) } */
/** @param {RunAnswer} run */
export function createModel(run) {
  const { nodes, edges, root } = run;
  const positions = new Map(nodes.map((node, position) => [node.id, position]));
  const callers = lists(nodes.length);
  const callees = lists(nodes.length);
  edges.forEach((edge, position) => {
    callers[edge.to].push(position);
    callees[edge.from].push(position);
  });
  const pairs = new Map(edges.map((edge, position) =>
    [`${nodes[edge.from].id}.${nodes[edge.to].id}`, position]));
  const scales = new Map();
  const sums = new Map();

  const model = {
    run, nodes, edges, root, callers, callees, rates: null, priced: null,
    repeats: null, // what the repeats of the run say together, once it is known
    indexOf: (id) => positions.get(id) ?? null,
    edgeOf: (ids) => pairs.get(ids) ?? null,
    edgeId: (edge) => `${nodes[edges[edge].from].id}.${nodes[edges[edge].to].id}`,
    reprice,
    account: run.account, verdict: run.verdict, inSeconds, tell,
    score: (node, path) =>
      (isInSeconds(path) ? inSeconds(path).nodes[node] : costScore(nodes[node], path)),
    edgeScore: (edge, path) =>
      (isInSeconds(path) ? inSeconds(path).edges[edge] : costScore(edges[edge], path)),
    scale, shade, chain, chainScores, pie, weight,
  };

  function reprice(rates) {
    model.rates = rates;
    model.priced = price(run, rates);
    sums.clear();
  }

  /* Takes verdict and account at other rates than those of the run, which the server computes. */
  function tell({ account, verdict }) {
    model.account = account;
    model.verdict = verdict;
    sums.clear();
  }

  /* What adds up over the run, by node and edge, and the path by its greatest sums. */
  function inSeconds(path) {
    if (!sums.has(path)) sums.set(path, summedUp(run, atOrigins(path)));
    return sums.get(path);
  }

  function atOrigins(path) {
    if (path === "loss" || path === "cost") {
      const name = path === "loss" ? "lost" : "cost";
      return model.priced.origins.map((origin) => origin[name]);
    }
    return model.account.parts.find(({ name }) => name === path).origins;
  }

  /* The score of shade 1: of what adds up over the run the greatest of a cost centre, but at least
     a tenth of the whole, so that a run that loses little stays pale; 1 for relative imbalance,
     the greatest count for sync, else the greatest maximum of the metric in the graph. */
  function scale(path) {
    if (isInSeconds(path)) {
      const whole = path === "loss" || path === "cost" ? model.priced.cost : model.account.elapsed_s;
      return Math.max(whole * PALE, reddest(path)[root]);
    }
    if (path.endsWith("-rel")) return 1;
    const size = path === "sync" ? path : `${path.split("-")[0]}-abs`;
    if (!scales.has(size)) {
      scales.set(size, nodes.reduce((most, node) => Math.max(most, costScore(node, size)), 0));
    }
    return scales.get(size);
  }

  /* By node, the greatest score of a cost centre below it. */
  function reddest(path) {
    const summed = inSeconds(path);
    if (summed.reddest) return summed.reddest;
    summed.reddest = nodes.map(() => 0);
    for (const origin of run.origins) {
      const score = summed.nodes[origin.chain.at(-1)];
      for (const node of origin.nodes) summed.reddest[node] = Math.max(summed.reddest[node], score);
    }
    return summed.reddest;
  }

  /* From 0 (white) to 1 (red): the square root of the score's part of the scale. Of what adds up,
     a function is as red as the reddest cost centre below it, but paler than the reddest of all. */
  function shade(node, path) {
    const isFunction = isInSeconds(path) && callees[node].length > 0;
    const score = isFunction ? reddest(path)[node] : model.score(node, path);
    const most = scale(path);
    const found = most > 0 ? Math.sqrt(Math.min(1, Math.max(0, score) / most)) : 0;
    return isFunction ? Math.min(OF_FUNCTIONS, found) : found;
  }

  /* The critical path: positions of nodes from main to a cost centre. */
  function chain(path) {
    if (path === "loss") return model.priced.chain;
    return isInSeconds(path) ? inSeconds(path).chain : run.paths[path].map(([node]) => node);
  }

  /* The score of what came through the path, for each of its nodes. */
  function chainScores(path) {
    if (path === "loss") return model.priced.chainLost;
    return isInSeconds(path) ? inSeconds(path).chainScores : run.paths[path].map(([, score]) => score);
  }

  /* The pie that explains a score, by process: for a loss that of the part that weighs more. */
  function pie(node, path) {
    return nodes[node].cost[pieMetric(node, path)].pie ?? [];
  }

  function pieMetric(node, path) {
    if (path === "sync") return "comp";
    if (!isInSeconds(path)) return path.split("-")[0];
    const { comp, comm } = model.priced.nodes[node];
    return comm > comp ? "h" : "comp";
  }

  /* The part of the whole run's cost that an edge stands for. */
  function weight(edge, path) {
    if (isInSeconds(path)) return model.priced.edges[edge].cost / (model.priced.cost || 1);
    const size = path === "sync" ? path : `${path.split("-")[0]}-abs`;
    return model.edgeScore(edge, size) / (model.scale(size) || 1);
  }

  return model;
}

const BINS = 5;

/* The bin of a shade, 0 to 4: those of the legend, at square-root steps of 0.2. */
export function bin(shade) {
  return Math.min(BINS - 1, Math.floor(shade * BINS + 1e-9));
}
