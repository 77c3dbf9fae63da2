/* With what a run opens: the shade, and the node, of the greatest sentence of its verdict. */

const LOSSES = ["imbalance", "transfer_imbalance"]; // these parts are what the shade of losses shows

/* The shade that shows what the greatest sentence is about. */
export function openingShade({ sentences }) {
  const part = sentences[0]?.part ?? null;
  return part === null || LOSSES.includes(part) ? "loss" : part;
}

/* The node of the greatest sentence, where a shade shows it; else null. */
export function openingNode({ sentences }, metric) {
  const [first] = sentences;
  if (first === undefined || ![openingShade({ sentences }), first.part].includes(metric)) return null;
  return first.node;
}
