/* Round numbers for an axis. */

import { TIME_UNITS } from "./terms.js";

/* At most about `most` multiples of 1, 2 or 5 times a power of ten between low and high, none
   closer together than `least`. */
export function ticks(low, high, most, least = 0) {
  if (!(high > low)) return [low];
  const rough = Math.max((high - low) / Math.max(most, 1), least);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high * (1 + 1e-12); number += 1) {
    found.push(number * step || 0); // not -0
  }
  return found;
}

/* Round numbers for a logarithmic axis from low to high, both greater than 0: powers of ten
   or, where there are fewer than two of them, evenly spaced numbers. */
export function logarithmicTicks(low, high, most) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  if (last - first < 1) return ticks(low, high, Math.min(most, 4)).filter((value) => value > 0);
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(most, 1)));
  const found = [];
  for (let power = first; power <= last; power += step) found.push(10 ** power);
  return found;
}

/* Seconds on an axis that ends at `high`, with digits enough to tell steps of `step` apart. */
export function inUnit(value, high, step) {
  const [unit, name] = TIME_UNITS.find(([size]) => high >= size) ?? TIME_UNITS.at(-1);
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit)));
  return `${(value / unit).toFixed(Math.min(digits, 9)).replace("-", "−")} ${name}`;
}
