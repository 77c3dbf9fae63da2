/* The laws of a node model: the value of a quantity of a call chain at a point, as
   bsplib.profiler.models.nodes computes it. A term comes in postfix order, so that nothing is parsed. */

const EQUAL = 1e-9;
const MOST_OFF = 300; // of a logarithm

const TWO = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b,
  "**": (a, b) => a ** b, min: Math.min, max: Math.max,
};
const ONE = {
  negative: (a) => -a, log: Math.log, log2: Math.log2, log10: Math.log10, exp: Math.exp,
  sqrt: Math.sqrt, abs: Math.abs, floor: Math.floor, ceil: Math.ceil,
};

/* The rows of a grid of p processes: the greatest divisor that is at most sqrt(p). */
function gridRows(p) {
  let count = Math.floor(Math.sqrt(p));
  while (p % count !== 0) count -= 1;
  return count;
}
ONE.grid_rows = gridRows;

/* What collectives cost, as in bsplib.experiments.collective_costs, which says what it is: h and
   supersteps for a value of m bytes in elements of k bytes on p processes, where l / g is r bytes. */
function mostReceived(p, radix) {
  const found = [];
  for (let size = 1; found.length === 0 || size < p; size *= radix) {
    const blocks = Math.ceil(p / size);
    const short = p - (blocks - 1) * size;
    found.push(Math.max(Math.min(radix, blocks) - 1,
      ((blocks - 1) % radix) * Math.ceil(size / short)));
  }
  return found;
}

const add = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
const piece = (m, k, p) => Math.ceil(m / k / p - 1e-9) * k;
const shortest = (m, k, p) => Math.floor(m / k / p + 1e-9) * k;
const pays = (bytes, p, r) => p > 2 && bytes * (p - 2) > r;

/* How many values a process gets at most in each stage; null if values are cut. */
function stagesOf(m, k, p, r) {
  const bytes = 8 * m / k;
  if (p <= 8) return pays(bytes, p, r) ? null : [p - 1];
  const ways = [8, 4, 2].map((radix) => mostReceived(p, radix));
  const costs = ways.map((way) => add(way) * Math.max(bytes, 256) + way.length * r);
  const least = Math.min(...costs);
  const cut = 2 * ((p - 1) * Math.max(bytes / p, 256) + r) < least;
  return cut ? null : ways[costs.indexOf(least)];
}

function combined(m, k, p, r) {
  const stages = stagesOf(m, k, p, r);
  return stages ? [add(stages) * m, stages.length] : [2 * (p - 1) * piece(m, k, p), 2];
}

function prefixed(m, k, p, r) {
  const stages = stagesOf(m, k, p, r);
  if (stages) return [add(stages) * m, stages.length];
  const [longest, first] = [piece(m, k, p), shortest(m, k, p)];
  const shortestOfOthers = Math.round(m / k) % p === p - 1 ? longest : first;
  return [(p - 1) * longest + Math.max(m - shortestOfOthers, (p - 2) * longest, (p - 1) * first), 2];
}

function reduced(m, k, p, r) {
  if (!pays(8 * m / k, p, r)) return [(p - 1) * m, 1];
  return [(p - 1) * piece(m, k, p) + m - shortest(m, k, p), 2];
}

function spread(m, k, p, r) {
  if (!pays(m, p, r)) return [(p - 1) * m, 1];
  const areLong = Math.round(m / k) % p === p - 1;
  return [2 * m - shortest(m, k, p) - (areLong ? piece : shortest)(m, k, p), 2];
}

/* Where the last process is the root, its piece is a longest one. */
function atLast(m, k, p, isCut) {
  return isCut ? [m + (p - 2) * piece(m, k, p), 2] : [(p - 1) * m, 1];
}

const COSTS = {
  combined, prefixed, reduced, spread,
  reduced_to_last: (m, k, p, r) => atLast(m, k, p, pays(8 * m / k, p, r)),
  spread_from_last: (m, k, p, r) => atLast(m, k, p, pays(m, p, r)),
};

/* The value of an expression at a point { n, p, ... } on a Machine whose l / g is `shift` times that
   of the runs; not finite where it has none. */
export function evaluate(postfix, point, shift = 1) {
  const stack = [];
  for (const token of postfix) {
    if (typeof token === "number") stack.push(token);
    else if (token.startsWith("$")) stack.push(point[token.slice(1)]);
    else if (TWO[token]) {
      const second = stack.pop();
      stack.push(TWO[token](stack.pop(), second));
    } else if (ONE[token]) stack.push(ONE[token](stack.pop()));
    else {
      const place = token.indexOf("_");
      const [m, k, p, r] = stack.splice(-4);
      const found = COSTS[token.slice(place + 1)](m, k, p, r * shift);
      stack.push(found[token.slice(0, place) === "h" ? 0 : 1]);
    }
  }
  return stack[0];
}

function formAt(form, point, shift) {
  return form.reduce((sum, [factor, term]) => sum + factor * evaluate(term, point, shift), 0);
}

/* The points around one at which the processes have equal shares of a size. */
function wholeShares(point, size) {
  if (size === "" || point[size] % point.p === 0) return [];
  return [Math.floor, Math.ceil].map((whole) =>
    ({ ...point, [size]: whole(point[size] / point.p) * point.p }));
}

/* Whether a point is on the side of a bound; null in the gap, or where it has no value. */
function holds({ quantity, low, high, above }, point) {
  const value = evaluate(quantity, point);
  if (!Number.isFinite(value)) return null;
  if (value >= high * (1 - EQUAL)) return above;
  if (value <= low * (1 + EQUAL)) return !above;
  return null;
}

function possible(law, point, shift) {
  const may = law.pieces.filter(({ where }) =>
    where.length === 0 || where.some((each) => holds(each, point) !== false));
  const pieces = may.length ? may : law.pieces;
  const found = pieces.flatMap(({ forms }) => forms.map((form) => formAt(form, point, shift)));
  const around = pieces.flatMap(({ forms, shared }) => forms.flatMap((form, at) =>
    wholeShares(point, shared[at]).map((there) => formAt(form, there, shift))));
  return [...found, ...around];
}

/* How far the logarithm of a fitted value may be off at a distance from the runs. */
function reachAt([least, noise, growth, factor], distance) {
  if (!Number.isFinite(distance)) return least;
  return Math.max(least, factor * Math.hypot(noise, growth * distance));
}

const refused = (why, settle = "") => ({ value: 0, low: 0, high: Infinity, why, settle });

/* { value, low, high, why (empty if it is known), settle }. away: { distance, strange, shift } */
export function valueOf(law, point, away) {
  if (law.kind === "refused") return refused(law.why, law.settle);
  if (away.strange && !law.zero) return refused(away.strange);
  if (law.inside && away.distance > EQUAL) return refused(law.inside, law.settle);
  const found = possible(law, point, away.shift ?? 1);
  if (!found.every(Number.isFinite)) return refused("its formula has no value there");
  const [value, least, most] =
    [found[0], Math.min(...found), Math.max(...found)].map((each) => Math.max(each, 0));
  const off = law.kind === "fitted" ? reachAt(law.reach, away.distance) : 0;
  return {
    value, low: least * Math.exp(-off), high: most * Math.exp(Math.min(off, MOST_OFF)),
    why: "", settle: "",
  };
}

/* How far a value is beyond those of the runs, in widths of their range. */
function widths(values, value) {
  const [low, high] = [values[0], values[values.length - 1]];
  const [width, beyond] = low <= 0
    ? [high - low, Math.max(value - high, low - value)]
    : [Math.log(high / low), Math.max(Math.log(value / high), Math.log(low / value))];
  if (width > 0) return Math.max(beyond, 0) / width;
  return beyond > 1e-12 ? Infinity : 0;
}

/* { distance of a point from the runs, strange: why nothing is known there, or empty }. */
export function awayFrom(variables, point) {
  const distance = Math.hypot(...variables.map(({ name, values }) => widths(values, point[name])));
  const fixed = variables.find(({ name, values }) =>
    values.length === 1 && point[name] !== values[0]);
  const strange = fixed
    ? `${fixed.name} is ${fixed.values[0]} in all runs; what depends on it is not known` : "";
  return { distance, strange };
}
