/* The predictions of a learnt program at a point, as the server computes them, and what is read off
   them. */

import { get } from "./api.js";
import { POINT } from "./points.js";

/* A prediction: { point, chains (in the order of the model's): [{ comp, comm, sync, total }], total,
   low, high (Infinity where a part is not known), refused: Map(cost centre -> why) }. */
function prediction(found) {
  return { ...found, high: found.high ?? Infinity, refused: new Map(found.refused) };
}

function read({ scaling, ...found }) {
  const [here, reference, start] = [found.prediction, found.reference, found.start].map(prediction);
  return {
    ...found, prediction: here, reference, start,
    scaling: { ...scaling, predictions: scaling.predictions.map(prediction) },
  };
}

/* What the server says of a point and a reference on a Machine, whose figures the state may set. */
export async function predictions(data, point, reference, { machine, g, l, speed }) {
  const query = {
    point: POINT.write(point), reference: reference === null ? null : POINT.write(reference),
    machine, g, l, speed,
  };
  const words = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
  const isOpened = reference === null && machine === data.machine && [g, l, speed].every((each) => each === null)
    && Object.entries(data.at).every(([name, value]) => point[name] === value);
  return read(isOpened ? data.opened : await get(`predicted.json?${words.join("&")}`));
}

/* The seconds of each cost centre. */
export function leavesOf(data, { chains }) {
  const seconds = new Map();
  chains.forEach(({ total }, number) => {
    const leaf = data.chains[number].nodes.at(-1);
    seconds.set(leaf, (seconds.get(leaf) ?? 0) + total);
  });
  return seconds;
}

/* The cost centre whose time grows most from one prediction to another; null if none grows. */
export function mostGrown(data, before, after) {
  const [first, then] = [leavesOf(data, before), leavesOf(data, after)];
  let [cause, most] = [null, 0];
  for (const [leaf, seconds] of then) {
    if (seconds - first.get(leaf) > most) [cause, most] = [leaf, seconds - first.get(leaf)];
  }
  return cause;
}

/* How much faster a prediction is than with one process; null where that is not known. */
export function speedup({ predictions: [first] }, { total }) {
  return first.point.p === 1 && first.refused.size === 0 && total > 0 ? first.total / total : null;
}
