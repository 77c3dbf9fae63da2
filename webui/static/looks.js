/* How nodes and lines look under the chosen path: shade, text, a bar for each process, width. */

import { bin } from "./model.js";
import { scoreText } from "./format.js";

const MOST_BARS = 24;
const THINNEST = 1;
const THICKEST = 6;

/* The metric whose pie explains a score: for a loss the part that weighs more. */
export function pieMetric(model, node, path) {
  if (path === "sync") return "comp";
  if (path !== "loss") return path.split("-")[0];
  const { comp, comm } = model.priced.nodes[node];
  return comm > comp ? "h" : "comp";
}

/* Heights from 0 to 1 of the bars of a pie: one a process or, of many, one for several, as
   high as the greatest of them. The server leaves out pies where they would be too many. */
export function bars(pie) {
  const most = pie.reduce((a, b) => Math.max(a, b), 0);
  if (most <= 0) return [];
  const each = Math.ceil(pie.length / MOST_BARS);
  const heights = [];
  for (let first = 0; first < pie.length; first += each) {
    heights.push(Math.max(...pie.slice(first, first + each)) / most);
  }
  return heights;
}

/* The part of the whole run's cost that a line stands for. */
function part(model, edge, path) {
  if (path === "loss") return model.priced.edges[edge].cost / (model.priced.cost || 1);
  const size = path === "sync" ? path : `${path.split("-")[0]}-abs`;
  return model.edgeScore(edge, size) / (model.scale(size) || 1);
}

/* The look of a scene: nodes by position { bin, text, bars, critical }, lines in the order of
   the scene { width, critical }. */
export function looks(model, scene, path) {
  const chain = model.chain(path);
  const critical = new Set(chain);
  const steps = new Set(chain.slice(1).map((node, i) => `${chain[i]} ${node}`));
  const shownSteps = stepsThroughShown(chain, scene);
  const nodes = new Map([...scene.boxes.keys()].map((node) => [node, {
    bin: bin(model.shade(node, path)),
    text: scoreText(model.score(node, path), path),
    bars: bars(model.nodes[node].cost[pieMetric(model, node, path)].pie ?? []),
    critical: critical.has(node),
  }]));
  const lines = scene.lines.map(({ from, to, edge }) => ({
    width: edge === null ? THINNEST
      : THINNEST + (THICKEST - THINNEST) * Math.sqrt(Math.min(1, part(model, edge, path))),
    critical: edge === null ? shownSteps.has(`${from} ${to}`) : steps.has(`${from} ${to}`),
  }));
  return { nodes, lines };
}

/* The steps of a critical path whose nodes are partly not shown. */
function stepsThroughShown(chain, scene) {
  const shown = chain.filter((node) => scene.boxes.has(node));
  return new Set(shown.slice(1).map((node, i) => `${shown[i]} ${node}`));
}
