/* The run that would narrow the band of a prediction, as run_to_make of
   bsplib.profiler.models.nodes.opening names it. */

import { memoryUse } from "./predict.js";

export const CLEAR_SLOWDOWN = 1.25; // below this it is in the band, and is not told
const WIDE = 1.25;
const MOST_OF_IT = 0.9;

/* The variables that can be sizes; one that is never above 0, such as a root, is none. */
const sizesOf = ({ variables }) =>
  variables.filter(({ name, values }) => name !== "p" && values.at(-1) > 0);

const isSame = (one, two) => Object.keys(one).every((name) => one[name] === two[name]);

/* A point with other sizes, by a function of the variable. */
function resized(data, point, size) {
  const sizes = sizesOf(data).map((variable) => [variable.name, size(variable)]);
  return { ...point, ...Object.fromEntries(sizes) };
}

/* The smallest run that shows what memory does at a point; one of half its sizes if none does. */
function runWithMemory(data, point, rates) {
  const wanted = MOST_OF_IT * memoryUse(data, point, rates).slowdown;
  const half = resized(data, point, ({ name }) => Math.ceil(point[name] / 2));
  let doubled = resized(data, point, ({ values }) => 2 * values.at(-1));
  while (sizesOf(data).some(({ name }) => doubled[name] < half[name])) {
    const found = resized(data, point, ({ name }) => Math.min(doubled[name], half[name]));
    if (memoryUse(data, found, rates).slowdown >= wanted) return found;
    doubled = resized(data, point, ({ name }) => 2 * doubled[name]);
  }
  return data.points.some((run) => isSame(half, run)) ? null : half;
}

/* The point of the run; null where none has to be made. */
export function runToMake(data, { point, total, low, high, memory }, rates) {
  if (memory.slowdown >= CLEAR_SLOWDOWN) return runWithMemory(data, point, rates);
  const halfWay = resized(data, point, ({ name, values }) => {
    const most = values.at(-1);
    const doublings = Math.log2(Math.max(point[name] / most, 1));
    return doublings > 1 ? most * 2 ** Math.ceil(doublings / 2) : point[name];
  });
  const isWide = high > WIDE * total || low * WIDE < total;
  return isWide && !isSame(halfWay, point) ? halfWay : null;
}
