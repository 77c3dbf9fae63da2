/* With what a run opens: the shade of its greatest sentence, and there the reddest cost centre. */

import { isInSeconds } from "./format.js";

const LOSSES = ["imbalance", "transfer_imbalance"]; // these parts are what the shade of losses shows

/* The shade that shows what the greatest sentence is about. */
export function openingShade({ sentences }) {
  const part = sentences.find((each) => each.part)?.part ?? null; // none where the run is too short to judge
  return part === null || LOSSES.includes(part) ? "loss" : part;
}

/* The cost centre with the greatest score or, of the paper's paths, the end of the path. */
export function culprit(model, metric) {
  if (!isInSeconds(metric)) return model.chain(metric).at(-1) ?? model.root;
  const leaves = model.nodes.flatMap((_, node) => (model.callees[node].length ? [] : [node]));
  return leaves.reduce((a, b) => (model.score(b, metric) > model.score(a, metric) ? b : a), leaves[0] ?? model.root);
}
