/* A predicted call graph, with what the graph view asks of a model (see model.js). */

import { mostGrown, speedup } from "./predict.js";

/* What the shades can show: title, and the part of the whole that counts as all of it. */
export const MEASURES = {
  scaling: {
    title: "beyond a perfect speedup",
    about: "Time beyond a perfect speedup from the reference's number of processes, at the same sizes.",
  },
  growth: {
    title: "more than at the reference",
    about: "Time here less the time at the reference.",
  },
  time: { title: "time", about: "All time of the run." },
  computation: { title: "computation", about: "w: computation." },
  transfers: { title: "transfers", about: "g h: bytes of the h-relations." },
  supersteps: { title: "supersteps", about: "l for each superstep." },
};
const PART = { computation: "comp", transfers: "comm", supersteps: "sync" };

function lists(length) {
  return Array.from({ length }, () => []);
}

/* The numbers of the chains of which each node, or each edge, is a part. */
function partsOf(data) {
  const pairs = new Map(data.edges.map(({ from, to }, edge) => [`${from} ${to}`, edge]));
  const [nodes, edges] = [lists(data.nodes.length), lists(data.edges.length)];
  data.chains.forEach(({ nodes: chain }, number) => chain.forEach((node, depth) => {
    nodes[node].push(number);
    if (depth > 0) edges[pairs.get(`${chain[depth - 1]} ${node}`)].push(number);
  }));
  return { nodes, edges };
}

const sumOver = (numbers, values) => numbers.reduce((sum, number) => sum + values[number], 0);

/* The model of a node model's data; place(predictions, rates) has to be called before it is
   shown. Beside what model.js names: prediction, reference (a prediction), start (the
   prediction at the same sizes with the reference's processes), scaling, speedup. */
export function createPredicted(data) {
  const { nodes, edges, root } = data;
  const parts = partsOf(data);
  const positions = new Map(nodes.map(({ id }, position) => [id, position]));
  const callers = lists(nodes.length);
  const callees = lists(nodes.length);
  edges.forEach((edge, position) => {
    callers[edge.to].push(position);
    callees[edge.from].push(position);
  });
  const edgeId = (edge) => `${nodes[edges[edge].from].id}.${nodes[edges[edge].to].id}`;
  const pairs = new Map(edges.map((_, position) => [edgeId(position), position]));
  let scores = new Map(); // of the chains, by measure

  const model = {
    run: {
      rates: data.rates, machines: data.machines, layouts: data.layouts,
      shown: nodes.map((_, node) => node), dropped: "",
    },
    data, nodes, edges, root, callers, callees, rates: null,
    indexOf: (id) => positions.get(id) ?? null,
    edgeOf: (ids) => pairs.get(ids) ?? null,
    edgeId, place, chain, chainScores, seconds,
    score: (node, measure) => sumOver(parts.nodes[node], chainScore(measure)),
    edgeScore: (edge, measure) => sumOver(parts.edges[edge], chainScore(measure)),
    weight: (edge) => model.edgeScore(edge, "time") / (model.prediction.total || 1),
    pie: () => [],
    scale: () => model.prediction.total,
    shade: (node, measure) => {
      const { total } = model.prediction;
      return total > 0 ? Math.sqrt(Math.min(1, Math.max(0, model.score(node, measure)) / total)) : 0;
    },
  };

  function place(found, rates) {
    Object.assign(model, found, { rates });
    model.speedup = speedup(model.scaling, model.prediction);
    scores = new Map();
    model.verdict = { balanced: false, sentences: [] };
  }

  /* The score of each chain. */
  function chainScore(measure) {
    if (!scores.has(measure)) scores.set(measure, model.prediction.chains.map(scored(measure)));
    return scores.get(measure);
  }

  function scored(measure) {
    const { prediction, reference, start } = model;
    if (measure === "growth") return ({ total }, chain) => total - reference.chains[chain].total;
    if (measure === "scaling") {
      const part = start.point.p / prediction.point.p;
      return ({ total }, chain) => total - part * start.chains[chain].total;
    }
    return (each) => each[PART[measure] ?? "total"];
  }

  /* The times of a node, or of an edge, in some prediction: { comp, comm, sync, total }. */
  function seconds({ node, edge }, prediction) {
    const numbers = edge === null ? parts.nodes[node] : parts.edges[edge];
    const sum = (part) => numbers.reduce((all, number) => all + prediction.chains[number][part], 0);
    return { comp: sum("comp"), comm: sum("comm"), sync: sum("sync"), total: sum("total") };
  }

  /* From main to a cost centre, the callee with the greatest score of what came this way. */
  function walked(measure) {
    const found = [];
    let [next, numbers] = [root, data.chains.map((_, number) => number)];
    while (next !== null) {
      const depth = found.length;
      numbers = numbers.filter((number) => data.chains[number].nodes[depth] === next);
      found.push([next, sumOver(numbers, chainScore(measure))]);
      const onward = new Map();
      for (const number of numbers) {
        const node = data.chains[number].nodes[depth + 1];
        if (node !== undefined) {
          onward.set(node, (onward.get(node) ?? 0) + chainScore(measure)[number]);
        }
      }
      const greatest = [...onward].reduce((a, b) => (a === null || b[1] > a[1] ? b : a), null);
      next = greatest !== null && greatest[1] > 0 ? greatest[0] : null;
    }
    return found[0][1] > 0 || found.length > 1 ? found : [];
  }

  function chain(measure) {
    return walked(measure).map(([node]) => node);
  }

  function chainScores(measure) {
    return walked(measure).map(([, score]) => score);
  }

  return model;
}

/* The cost centre that loses most against a perfect speedup from the reference's processes, and
   the seconds; null where no cost centre loses. */
export function hurtsFirst(model) {
  const part = model.start.point.p / model.prediction.point.p;
  const perfect = {
    chains: model.start.chains.map(({ total }) => ({ total: part * total })),
  };
  const node = part < 1 ? mostGrown(model.data, perfect, model.prediction) : null;
  return node === null ? null : { node, seconds: model.score(node, "scaling") };
}
