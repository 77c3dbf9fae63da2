/* A loaded run with its account, on its own or on another Machine: what every view shows. Nodes
   and edges are named by their positions in `nodes` and `edges`, as the server numbers them. */

function lists(length) {
  return Array.from({ length }, () => []);
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
  /* Whether the account has it, in seconds; otherwise it is one of the seventeen. */
  const isInSeconds = (path) => path in model.times.nodes;
  /* What the server sends of a path: of "nodes", "edges", "paths", "shades" or "scales". */
  const sent = (kind, path) => (isInSeconds(path) ? model.times : run.costs)[kind][path];

  const model = {
    run, nodes, edges, root, callers, callees, rates: run.rates,
    repeats: null, // what the repeats of the run say together, once it is known
    indexOf: (id) => positions.get(id) ?? null,
    edgeOf: (ids) => pairs.get(ids) ?? null,
    edgeId: (edge) => `${nodes[edges[edge].from].id}.${nodes[edges[edge].to].id}`,
    times: run.times, account: run.account, verdict: run.verdict, tell,
    score: (node, path) => sent("nodes", path)[node],
    edgeScore: (edge, path) => sent("edges", path)[edge],
    scale: (path) => sent("scales", path),
    shade: (node, path) => sent("shades", path)[node],
    shadeOf, pie, weight,
    chain: (path) => sent("paths", path).map(([node]) => node), // from main to a cost centre
    chainScores: (path) => sent("paths", path).map(([, score]) => score), // of what came through it
  };

  /* Takes the account of the run on a Machine, or its own. */
  function tell({ times, account, verdict }) {
    Object.assign(model, { times, account, verdict });
  }

  /* The shade, from 0 (white) to 1 (red), of a score that is that of no node alone. */
  function shadeOf(score, path) {
    const most = model.scale(path);
    return most > 0 ? Math.sqrt(Math.min(1, Math.max(0, score) / most)) : 0;
  }

  /* The pie that explains a score, by process: of times by the process that is their root. */
  function pie(node, path) {
    if (isInSeconds(path)) return model.times.pies[node]?.[path] ?? [];
    return nodes[node].cost[path === "sync" ? "comp" : path.split("-")[0]].pie ?? [];
  }

  /* The part of the whole run that an edge stands for. */
  function weight(edge, path) {
    if (isInSeconds(path)) return model.edgeScore(edge, "time") / (model.score(root, "time") || 1);
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
