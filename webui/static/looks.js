/* How nodes and lines look under the chosen path: shade, text, a bar for each process, width. */

import { executed } from "./executed.js";
import { bin } from "./model.js";
import { scoreText, seconds } from "./format.js";

const MOST_BARS = 24;
const THINNEST = 1;
const THICKEST = 6;

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

/* The look of a function below a cost centre: it has seconds, and no part in the paths. */
function lookOfExecuted({ seconds: value, processes }) {
  return { bin: 0, text: seconds(value), bars: bars(processes), critical: false, apart: true };
}

/* The look of a scene: nodes by position { bin, text, bars, critical, apart }, lines in the order
   of the scene { width, critical }. */
export function looks(model, scene, path) {
  const chain = model.chain(path);
  const critical = new Set(chain);
  const steps = new Set(chain.slice(1).map((node, i) => `${chain[i]} ${node}`));
  const shownSteps = stepsThroughShown(chain, scene);
  const lookOf = (node) => ({
    bin: bin(model.shade(node, path)),
    text: scoreText(model.score(node, path), path),
    bars: bars(model.pie(node, path)),
    critical: critical.has(node), apart: false,
  });
  const nodes = new Map([...scene.boxes.keys()].map((number) => {
    const found = executed(model, number);
    return [number, found === null ? lookOf(number) : lookOfExecuted(found)];
  }));
  const lines = scene.lines.map(({ from, to, edge }) => ({
    width: edge === null ? THINNEST
      : THINNEST + (THICKEST - THINNEST) * Math.sqrt(Math.min(1, model.weight(edge, path))),
    critical: edge === null ? shownSteps.has(`${from} ${to}`) : steps.has(`${from} ${to}`),
  }));
  return { nodes, lines };
}

/* The steps of a critical path whose nodes are partly not shown. */
function stepsThroughShown(chain, scene) {
  const shown = chain.filter((node) => scene.boxes.has(node));
  return new Set(shown.slice(1).map((node, i) => `${shown[i]} ${node}`));
}
