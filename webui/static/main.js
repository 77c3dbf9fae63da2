/* The page: loads the run that the state names, and shows it in every part. */

import { Offline, address, get, offline } from "./api.js";
import { createAccount } from "./account.js";
import { createBrush } from "./brush.js";
import { createChain } from "./chain.js";
import { createDetail } from "./detail.js";
import { byId } from "./dom.js";
import { createHeader } from "./header.js";
import { listenForKeys } from "./keys.js";
import { createLegend } from "./legend.js";
import { create as createMachine } from "./machine.js";
import { createModel } from "./model.js";
import { openingShade } from "./opening.js";
import { createPaths } from "./paths.js";
import { create as createProcesses } from "./processes.js";
import { chosenFigures, ratesOf } from "./rates.js";
import { create as createSearch } from "./search.js";
import { startSides } from "./sides.js";
import { followAddress, isUsual, readAddress, setUsual, state, subscribe, update } from "./store.js";
import { startTheme } from "./theme.js";
import { createVerdict } from "./verdict.js";
import { createViews } from "./views.js";

/* What every view and panel is given. loaded.model is null until a run has been loaded. */
const loaded = { traces: [], model: null };
/** @type {Context} */
const context = {
  store: { state, update, subscribe },
  api: { get, address, offline, Offline },
  loaded,
  query: runQuery,
  anew,
  say,
};

const SLOW = 300; // ms after which the reader is told what takes so long
const LOADED_BY = ["trace", "run", "brush"];
const MOVED_BY = ["zoom", "span"];
const PRICED_BY = ["machine", "g", "l", "speed"];

const SELECTED_BY = ["model", "metric", "node", "edge"];

/* The shade with which each run opens that has been loaded; null: it is not known yet. */
const shades = new Map();
const runKey = ({ trace, run }) => `${trace} ${run}`;

let header = null;
let views = null;
let parts = []; // each with the names of what it depends on; null where it sees for itself

/* The query for data of the run as it is shown: with bsplib's functions, and which supersteps. */
function runQuery() {
  const [from, to] = state.brush ?? [null, null];
  return { library: state.filters.library ? 1 : null, from, to };
}

/* What is not kept when another run is chosen. */
function anew() {
  return { node: null, edge: null, zoom: null, brush: null, ...(isUsual("metric") ? { metric: null } : {}) };
}

function say(text) {
  byId("status").textContent = text;
}

async function load() {
  const { trace, run } = state;
  const slow = setTimeout(() => say("Reading the run …"), SLOW);
  try {
    const path = address(trace, run, "run", runQuery());
    const data = await get(path);
    if (path !== address(state.trace, state.run, "run", runQuery())) return false;
    loaded.model = createModel(data);
    document.body.classList.remove("loading");
    openOn(loaded.model);
    say("");
    return true;
  } catch (error) {
    // A saved page has whole runs only: it opens with all supersteps, whatever its address says.
    if (error instanceof Offline && loaded.model === null && state.brush !== null) {
      state.brush = null;
      return load();
    }
    say(error.message);
    return false;
  } finally {
    clearTimeout(slow);
  }
}

/* Lets a run that is shown first be shaded by what its greatest sentence is about, unless the
   address names a shade. */
function openOn({ verdict }) {
  if (!shades.has(runKey(state))) shades.set(runKey(state), openingShade(verdict));
  state.metric ??= shades.get(runKey(state));
}

/* Asks what the repeats of a run say together, where it has some and is shown as it was. */
async function gatherRepeats(model) {
  if (!isRepeated() || state.brush !== null) return;
  try {
    const library = state.filters.library ? 1 : null;
    const repeats = await get(address(state.trace, state.run, "repeats", { library }));
    if (loaded.model !== model) return;
    model.repeats = repeats;
    showAll(new Set(["repeats"]));
  } catch (error) {
    if (!(error instanceof Offline)) say(error.message);
  }
}

function isRepeated() {
  const trace = loaded.traces.find(({ id }) => id === state.trace);
  return (trace?.runs[state.run]?.repeat?.[1] ?? 1) > 1;
}

/* Shows the run with its own account or, on another Machine, with the one that the server makes;
   a saved page has those of the Machines that were named. */
function price() {
  const { model } = loaded;
  const figures = chosenFigures(model.run, state, offline);
  model.rates = ratesOf(model.run, figures);
  if (Object.values(figures).every((value) => value === null)) model.tell(model.run);
  else tell(model, figures);
}

async function tell(model, figures) {
  const { rates } = model;
  const query = offline ? {} : runQuery();
  try {
    const told = await get(address(state.trace, state.run, "account", { ...query, ...figures }));
    if (loaded.model !== model || model.rates !== rates) return;
    model.tell(told);
    showAll(new Set(["model"]));
  } catch (error) {
    say(error.message);
  }
}

/* Shows what has changed, in each part that depends on it; in the view at each frame. */
function showAll(changed) {
  const { model } = loaded;
  const concerns = (names) => names === null || names.some((name) => changed.has(name));
  if (![...changed].every((name) => MOVED_BY.includes(name))) {
    for (const [part, names] of parts) if (concerns(names)) part.show(model, state, changed);
  }
  views.show(model, changed);
}

async function onChange(_, changed) {
  const known = new Set(changed);
  const reload = LOADED_BY.some((name) => changed.has(name))
    || (changed.has("filters") && state.filters.library !== loaded.library);
  if (reload) {
    if (!namesRun()) return;
    header.offer(loaded.traces);
    loaded.library = state.filters.library;
    if (!(await load())) return;
  }
  if (loaded.model === null) return;
  if (changed.has("compared")) header.offer(loaded.traces);
  if (reload || PRICED_BY.some((name) => changed.has(name))) {
    price();
    known.add("model");
  }
  showAll(known);
  if (reload) gatherRepeats(loaded.model);
}

/* The run that the state names or, where there is none, the first that can be shown; null
   where there is nothing to show, which is said then. */
function nearestRun() {
  const readable = loaded.traces.filter(({ error }) => error === null);
  const trace = readable.find(({ id }) => id === state.trace) ?? readable[0] ?? loaded.traces[0];
  const trouble = !trace ? "There is no trace to show."
    : trace.error ?? (trace.runs.length === 0 ? "The trace has no runs." : null);
  if (trouble !== null) {
    say(trouble);
    return null;
  }
  return { trace: trace.id, run: trace.runs[state.run] === undefined ? trace.opening : state.run };
}

/* Whether the state names a run that can be shown; else it is changed, which shows another. */
function namesRun() {
  const nearest = nearestRun();
  if (nearest === null) return false;
  const isThere = nearest.trace === state.trace && nearest.run === state.run;
  if (!isThere) update(nearest, { push: false });
  return isThere;
}

/* Loads the list of traces, and shows a run of them. */
async function open() {
  loaded.traces = await get("traces.json");
  readAddress(); // which run opens is known only now
  header.offer(loaded.traces);
  if (!namesRun()) return;
  loaded.library = state.filters.library;
  if (await load()) {
    price();
    showAll(new Set(["model", "brush"]));
    gatherRepeats(loaded.model);
  }
}

/* The run with which a trace opens. */
function openingRun({ trace }) {
  const { traces } = loaded;
  return (traces.find(({ id }) => id === trace) ?? traces[0])?.opening ?? 0;
}

function start() {
  startTheme();
  setUsual("run", openingRun);
  setUsual("metric", (fields) => shades.get(runKey(fields)) ?? null);
  followAddress();
  header = createHeader(context);
  startSides();
  const panel = (id, create) => create(byId(id), context);
  parts = [
    [header, ["model", "repeats"]], [createAccount(context), ["model", "metric", "repeats"]],
    [createVerdict(context), ["model", "repeats"]], [createBrush(context), ["brush"]],
    [createPaths(context), ["model", "metric"]], [createLegend(), ["model", "metric", "view"]],
    [createChain(context), ["model", "metric", "node"]], [createDetail(context), SELECTED_BY],
    [panel("machine", createMachine), null], [panel("search", createSearch), null],
    [panel("processes", createProcesses), SELECTED_BY],
  ];
  views = createViews(byId("tabs"), byId("main"), context);
  listenForKeys();
  subscribe(onChange);
  open().catch((error) => say(error.message));
}

start();
