/* A loaded run with its account, on its own or on another Machine: what every view shows. Nodes
   and edges are named by their positions in `nodes` and `edges`, as the server numbers them. */

import { PATHS } from "./terms.js";

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

/* The model of a run's data.

   { run, nodes, edges, root, callers, callees (positions of edges, by node), indexOf(id),
     edgeOf(ids), tell(account), times, account, verdict, rates, score(node, path),
     edgeScore(edge, path), shade(node, path), shadeOf(score, path), scale(path), chain(path), chainScores(path),
     pie(node, path), weight(edge, path) } */
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
  /* Whether the account has it, in seconds; otherwise it is one of the seventeen. */
  const isInSeconds = (path) => path in model.times.nodes;

  const model = {
    run, nodes, edges, root, callers, callees, rates: run.rates,
    repeats: null, // what the repeats of the run say together, once it is known
    indexOf: (id) => positions.get(id) ?? null,
    edgeOf: (ids) => pairs.get(ids) ?? null,
    edgeId: (edge) => `${nodes[edges[edge].from].id}.${nodes[edges[edge].to].id}`,
    times: run.times, account: run.account, verdict: run.verdict, tell,
    score: (node, path) =>
      (isInSeconds(path) ? model.times.nodes[path][node] : costScore(nodes[node], path)),
    edgeScore: (edge, path) =>
      (isInSeconds(path) ? model.times.edges[path][edge] : costScore(edges[edge], path)),
    scale, shade, shadeOf, pie, weight,
    chain: (path) => pathOf(path).map(([node]) => node),
    chainScores: (path) => pathOf(path).map(([, score]) => score), // of what came through it
  };

  /* Takes the account of the run on a Machine, or its own. */
  function tell({ times, account, verdict }) {
    Object.assign(model, { times, account, verdict });
  }

  /* The critical path: nodes from main to a cost centre, with what came through it. */
  function pathOf(path) {
    return isInSeconds(path) ? model.times.paths[path] : run.paths[path];
  }

  /* The score of shade 1: of times the greatest of a cost centre, but at least a tenth of the time in
     main, so that a run that loses little stays pale; 1 for relative imbalance, the greatest count
     for sync, else the greatest maximum of the metric in the graph. */
  function scale(path) {
    if (isInSeconds(path)) return model.times.scales[path];
    if (path.endsWith("-rel")) return 1;
    const size = path === "sync" ? path : `${path.split("-")[0]}-abs`;
    if (!scales.has(size)) {
      scales.set(size, nodes.reduce((most, node) => Math.max(most, costScore(node, size)), 0));
    }
    return scales.get(size);
  }

  /* From 0 (white) to 1 (red): the square root of the score's part of the scale; of times a function
     is as red as the reddest cost centre below it, but paler than the reddest of all. */
  function shade(node, path) {
    return isInSeconds(path) ? model.times.shades[path][node] : shadeOf(model.score(node, path), path);
  }

  /* The shade of a score that is that of no node alone. */
  function shadeOf(score, path) {
    const most = scale(path);
    return most > 0 ? Math.sqrt(Math.min(1, Math.max(0, score) / most)) : 0;
  }

  /* The pie that explains a score, by process: of times by the process that is their root. */
  function pie(node, path) {
    if (isInSeconds(path)) return model.times.pies[node]?.[path] ?? [];
    return nodes[node].cost[path === "sync" ? "comp" : path.split("-")[0]].pie ?? [];
  }

  /* The part of the whole run that an edge stands for. */
  function weight(edge, path) {
    if (isInSeconds(path)) return model.times.edges.time[edge] / (model.score(root, "time") || 1);
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
