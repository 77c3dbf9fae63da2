/* The state of the page, mirrored in the address. A choice makes an entry of the browser's
   history, so that its back button undoes it; what follows the mouse, such as pan and zoom,
   replaces the present entry. Nodes are named by their ids, which are the same in every run. */

import { SHADES } from "./format.js";

const text = { read: (value) => value, write: (value) => value };
const number = {
  read: (value) => (value !== "" && Number.isFinite(Number(value)) ? Number(value) : undefined),
  write: String,
};
export const choice = (...values) => ({
  read: (value) => (values.includes(value) ? value : undefined), write: String,
});
const flag = { read: (value) => value === "1" || undefined, write: () => "1" };
const list = { read: (value) => value.split(",").filter(Boolean), write: (value) => value.join(",") };
const numbers = (length) => ({
  read: (value) => {
    const parts = value.split(",").map(Number);
    return parts.length === length && parts.every(Number.isFinite) ? parts : undefined;
  },
  write: (value) => value.join(","),
});

/* Each field: its default (a value, or a function of the fields before it), and how it is read
   from and written to the address.
   edge: ids of caller and callee, "A.B". brush: first and last superstep. zoom: the point in
   the middle of the graph's canvas, and the scale. speed: how many times as fast as the
   recorded processes those of the Machine compute; it replaces the Machine's own ratio. axis,
   layer and span: axis and colour of the timeline, and the part of the axis that is seen.
   sort: the column by which the table is sorted, with "-" in front if upwards. */
const FIELDS = {
  trace: ["0", text], run: [0, number], compared: [null, text], view: ["graph", text],
  metric: ["loss", choice(...SHADES)], machine: [null, text], g: [null, number], l: [null, number],
  speed: [null, number], node: [null, text], edge: [null, text], search: ["", text],
  brush: [null, numbers(2)], zoom: [null, numbers(3)], axis: ["time", choice("superstep", "time")],
  layer: [null, text], span: [null, numbers(2)], sort: [null, text],
};
/* What is shown of the graph. hidden, collapsed: ids of nodes; only: the node whose callers
   and callees are shown; from: the node that is shown with its callees; library: functions of
   bsplib, too; all: no node is folded for being cheap; unfolded: ids of the cost centres below
   which the functions are shown that were executed there. */
const FILTERS = {
  hidden: [[], list], from: [null, text], only: [null, text], collapsed: [[], list],
  library: [false, flag], all: [false, flag], unfolded: [[], list],
};

const listeners = [];

const usualIn = (usual, fields) => (typeof usual === "function" ? usual(fields) : usual);

/** @returns {any} */
function defaults(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, [usual]]) => [name, usual]));
}

/** @type {State} */
export const state = { ...defaults(FIELDS), filters: defaults(FILTERS) };

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/* Lets the default of a field depend on the fields before it: usual(fields). */
export function setUsual(name, usual) {
  FIELDS[name] = [usual, FIELDS[name][1]];
}

/* Whether a field has its default. */
export function isUsual(name) {
  return same(state[name], usualIn(FIELDS[name][0], state));
}

/* Adds fields, or gives them another form or default, before the address is read first. */
export function declareFields(fields) {
  Object.assign(FIELDS, fields);
  Object.assign(state, defaults(fields));
}

/* The fragment of the address for a state: defaults are left out. */
export function toAddress({ filters, ...fields }) {
  const words = [];
  const write = (values, known) => {
    for (const [name, [usual, form]] of Object.entries(known)) {
      if (same(values[name], usualIn(usual, values))) continue;
      const value = encodeURIComponent(form.write(values[name])).replaceAll("%2C", ",");
      words.push(`${name}=${value}`);
    }
  };
  write(fields, FIELDS);
  write(filters, FILTERS);
  return words.join("&");
}

/* The state that an address describes; what it does not name, or not well, is the default. */
export function fromAddress(fragment) {
  const words = new URLSearchParams(fragment);
  const read = (known) => {
    const values = {};
    for (const [name, [usual, form]] of Object.entries(known)) {
      const word = words.get(name);
      const value = word === null ? undefined : form.read(word);
      values[name] = value === undefined ? usualIn(usual, values) : value;
    }
    return values;
  };
  return { ...read(FIELDS), filters: read(FILTERS) };
}

/* Changes fields of the state and tells all listeners which fields changed. Filters that are
   not named in `changes.filters` stay as they are. */
/** @param {Changes} changes */
export function update(changes, { push = true } = {}) {
  const next = { ...changes };
  if (changes.filters) next.filters = { ...state.filters, ...changes.filters };
  const changed = new Set(Object.keys(next).filter((name) => !same(state[name], next[name])));
  if (changed.size === 0) return;
  if (push) writeAddress(); // what was about to be written belongs to the entry before
  for (const name of changed) state[name] = next[name];
  if (push) history.pushState(null, "", `#${toAddress(state)}`);
  else waiting ??= setTimeout(writeAddress, PAUSE);
  tell(changed);
}

const PAUSE = 120; // ms: browsers allow about 200 changes of the address in half a minute
let waiting = null;

/* Writes the state to the address, if it has changed since. */
function writeAddress() {
  if (waiting === null) return;
  clearTimeout(waiting);
  waiting = null;
  history.replaceState(null, "", `#${toAddress(state)}`);
}

function tell(changed) {
  for (const listener of listeners) listener(state, changed);
}

/* Calls fn(state, changed) after each change; `changed` is the set of the names of fields. */
export function subscribe(fn) {
  listeners.push(fn);
}

/* Reads the state from the address; returns the names of the fields that changed. */
export function readAddress() {
  const next = fromAddress(location.hash.slice(1));
  const changed = new Set(Object.keys(next).filter((name) => !same(state[name], next[name])));
  Object.assign(state, next);
  return changed;
}

/* Reads the state from the address, now and whenever the reader goes back or changes it. */
export function followAddress() {
  readAddress();
  window.addEventListener("popstate", () => {
    clearTimeout(waiting);
    waiting = null;
    const changed = readAddress();
    if (changed.size) tell(changed);
  });
}
