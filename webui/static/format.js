/* Texts for numbers, by the same rules as profiler/format.py. */

import { MEASURES, METRICS, NARROW, PARTS, PART_TITLES, PATHS, SIZE_UNITS, TIME_UNITS } from "./terms.js";

const EXACT = 60; // decimals: all that a number from 1 to 1000 has

export const partName = (part) => NARROW[part] ?? PART_TITLES[part];
/* All that shades can stand for: the paths, and what adds up over the run in seconds. */
export const SHADES = [...PATHS, "time", ...PARTS];
export const isPart = (path) => PARTS.includes(path);
export const isInSeconds = (path) => path === "loss" || path === "time" || isPart(path);

const KINDS = {
  "": "function", sync: "cost centre: sync", oblsync: "cost centre: oblivious sync",
  end: "the stretch to the end of main",
};

/* Three digits, before the unit is chosen: 999.7 µs is 1.00 ms, not 1000 µs. */
function threeDigits(value) {
  return Number(value.toPrecision(3));
}

/* A number with some decimals; ties go to the even digit, as in Python, and not upwards. */
function fixed(number, decimals) {
  const exact = number.toFixed(EXACT);
  const end = exact.indexOf(".") + 1 + decimals;
  if (!/^50*$/.test(exact.slice(end))) return number.toFixed(decimals);
  const below = exact.slice(0, decimals ? end : end - 1);
  return Number(below.at(-1)) % 2 ? number.toFixed(decimals) : below;
}

function short(number) {
  const rounded = threeDigits(number);
  return fixed(number, rounded < 10 ? 2 : rounded < 100 ? 1 : 0);
}

/* A time with three digits, such as 1.35 ms; from 1000 s on in whole seconds. */
export function seconds(value) {
  if (value < 0) return `−${seconds(-value)}`;
  for (const [scale, unit] of TIME_UNITS) {
    if (threeDigits(value) >= scale) return `${short(value / scale)} ${unit}`;
  }
  return value ? `${short(value * 1e9)} ns` : "0 s";
}

/* A number of bytes, such as 812 B or 1.35 MB (1 MB is 10^6 bytes). */
export function bytes(value) {
  if (value < 0) return `−${bytes(-value)}`;
  for (const [scale, unit] of SIZE_UNITS) {
    if (threeDigits(value) >= scale) return `${short(value / scale)} ${unit}`;
  }
  return `${fixed(value, 0)} B`;
}

/* A fraction in percent: whole from 10% on, below with two digits. */
export function percent(fraction) {
  const value = 100 * fraction;
  if (value === 0 || Math.abs(value) >= 10) return `${value.toFixed(0)}%`;
  return Math.abs(value) < 0.1 ? "<0.1%" : `${Number(value.toPrecision(2))}%`;
}

export function integer(value) {
  return value.toLocaleString("en-GB");
}

/* A number of things in words: 1 superstep, 2 supersteps. */
export function count(value, noun) {
  return `${integer(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/* A value of a metric with its unit: bytes for h, otherwise a time. */
export function amount(value, metric) {
  return metric === "h" ? bytes(value) : seconds(value);
}

/* Half to even, as Python rounds. */
export function rounded(value) {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 ? floor + 1 : floor;
}

/* Average and minimum in percent of the maximum, such as (54% | 21%). */
export function balance({ max, avg, min }) {
  return max ? `(${rounded(100 * avg / max)}% | ${rounded(100 * min / max)}%)` : "";
}

/* Maximum and balance, such as 1.35 ms (54% | 21%). */
export function summary(cost, metric) {
  return `${amount(cost.max, metric)} ${balance(cost)}`.trim();
}

/* The score of a view: seconds of time, supersteps, a cost, or a fraction. */
export function scoreText(value, path) {
  if (isInSeconds(path)) return seconds(value);
  if (path === "sync") return integer(value);
  const [metric, measure] = path.split("-");
  return measure === "rel" ? percent(value) : amount(value, metric);
}

/* The same with two digits, for narrow places: 1.7 ms, 35 ms, 160 ms. */
export function roughScore(value, path) {
  const text = scoreText(Number(value.toPrecision(2)), path);
  return text.replace(/(\.\d)\d(?= )|\.0(?= )/, "$1");
}

export function pathTitle(path) {
  if (path === "loss" || path === "time") return path;
  if (isPart(path)) return PART_TITLES[path];
  if (path === "sync") return "number of supersteps";
  const [metric, measure] = path.split("-");
  return `${METRICS[metric]}, ${MEASURES[measure]}`;
}

/* The name of a node, with the kind of its sync if that is not sync. */
export function label({ name, sync }) {
  return sync === "" || sync === "sync" ? name : `${name} (${sync})`;
}

/* The same without the file, which its function has. */
export function shortLabel({ short, sync, name }) {
  return label({ name: short ?? name, sync });
}

export function kind(node) {
  return KINDS[node.sync] ?? node.sync;
}

/* File and line of a node; empty where it has none. */
export function place(node) {
  return node.file ? `${node.file}:${node.line}` : "";
}

export function processes(value) {
  return value === 1 ? "1 process" : `${integer(value)} processes`;
}
