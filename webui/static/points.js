/* Points of a node model: its variables with values, as the sliders set them. The number of
   processes is always p. */

const LONG = 2 ** 17;
const MORE = { size: 2 ** 20, below: 8 }; // how far a slider goes beyond the runs
const STEPS_OF_DOUBLE = 4; // of a slider, where the runs have other values than powers of two
const STEPS_OF_RANGE = 100; // of a slider that is not logarithmic

const isPower = (value) => value >= 1 && Number.isInteger(Math.log2(value));

/* A value as text: powers of two that are long as 2^30. */
export function valueText(value) {
  if (value >= LONG && isPower(value)) return `2^${Math.log2(value)}`;
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}

/* The number that a text says, as in 1e6 or 2^30; null if it says none. */
export function readValue(text) {
  const words = text.trim().replace("**", "^").split("^");
  if (words.length > 2 || words.some((word) => !/^[-+\d.e]+$/i.test(word))) return null;
  const value = words.map(Number).reduceRight((power, base) => base ** power);
  return Number.isFinite(value) ? value : null;
}

/* A point in words: n = 1024, p = 8. */
export function pointText(point) {
  return Object.entries(point).map(([name, value]) => `${name} = ${valueText(value)}`).join(", ");
}

/* How the state keeps a point: n:1024,p:8. */
export const POINT = {
  read: (text) => {
    const found = {};
    for (const part of text.split(",")) {
      const [name, value] = part.split(":");
      const number = readValue(value ?? "");
      if (number === null) return undefined;
      found[name] = number;
    }
    return found;
  },
  write: (point) => Object.entries(point)
    .map(([name, value]) => `${name}:${valueText(value)}`).join(","),
};

/* The largest run: the greatest value of each variable. */
export function largest(variables) {
  return Object.fromEntries(variables.map(({ name, values }) => [name, values.at(-1)]));
}

/* A value that a variable may have, nearest to another. */
export function allowed({ name, values }, value, most) {
  const whole = values.every(Number.isInteger);
  const rounded = whole ? Math.round(value) : value;
  return name === "p" ? Math.min(Math.max(rounded, 1), most) : rounded;
}

/* The scale of a variable's slider: { steps, at(step) -> value, of(value) -> step }. */
export function scaleOf(variable, most) {
  const { name, values } = variable;
  const [low, high] = [values[0], values.at(-1)];
  if (low <= 0) {
    const width = Math.max(high - low, 1);
    return {
      steps: STEPS_OF_RANGE,
      at: (step) => allowed(variable, low + 8 * width * step / STEPS_OF_RANGE, most),
      of: (value) => Math.round(STEPS_OF_RANGE * (value - low) / (8 * width)),
    };
  }
  const each = values.every(isPower) ? 1 : STEPS_OF_DOUBLE;
  const least = name === "p" ? 1 : Math.max(low / MORE.below, values.every(Number.isInteger) ? 1 : 0);
  const top = name === "p" ? most : high * MORE.size;
  return {
    steps: Math.round(each * Math.log2(top / least)),
    at: (step) => allowed(variable, least * 2 ** (step / each), most),
    of: (value) => Math.round(each * Math.log2(Math.max(value, least) / least)),
  };
}
