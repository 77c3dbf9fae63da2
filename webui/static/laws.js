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

/* The value of an expression at a point { n, p, ... }; not finite where it has none. */
export function evaluate(postfix, point) {
  const stack = [];
  for (const token of postfix) {
    if (typeof token === "number") stack.push(token);
    else if (token.startsWith("$")) stack.push(point[token.slice(1)]);
    else if (TWO[token]) {
      const second = stack.pop();
      stack.push(TWO[token](stack.pop(), second));
    } else stack.push(ONE[token](stack.pop()));
  }
  return stack[0];
}

function formAt(form, point) {
  return form.reduce((sum, [factor, term]) => sum + factor * evaluate(term, point), 0);
}

/* Whether a point is on the side of a bound; null in the gap, or where it has no value. */
function holds({ quantity, low, high, above }, point) {
  const value = evaluate(quantity, point);
  if (!Number.isFinite(value)) return null;
  if (value >= high * (1 - EQUAL)) return above;
  if (value <= low * (1 + EQUAL)) return !above;
  return null;
}

/* The bounds of a piece on a Machine whose l / g is `shift` times that of the runs. */
function boundsOf(law, number, shift) {
  if (shift === 1 || law.stages.length === 0) return law.pieces[number].where;
  return law.stages[number].map((bound) =>
    ({ ...bound, low: bound.low * shift, high: bound.high * shift }));
}

function possible(law, point, shift) {
  const may = law.pieces.filter((_, number) => {
    const where = boundsOf(law, number, shift);
    return where.length === 0 || where.some((each) => holds(each, point) !== false);
  });
  const pieces = may.length ? may : law.pieces;
  return pieces.flatMap(({ forms }) => forms.map((form) => formAt(form, point)));
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
  const [least, most] = [Math.min(...found), Math.max(...found)];
  if (most - least > EQUAL * Math.max(...found.map(Math.abs))) {
    return refused(law.why || "the runs do not tell which form holds there", law.settle);
  }
  const value = Math.max(found[0], 0);
  const off = law.kind === "fitted" ? reachAt(law.reach, away.distance) : 0;
  return {
    value, low: value * Math.exp(-off), high: value * Math.exp(Math.min(off, MOST_OFF)),
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
