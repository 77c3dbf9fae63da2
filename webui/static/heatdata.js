/* The windows of the heat map that are there: the whole run, coarsely, and the part that is
   seen as finely as the screen. Finer ones are asked for one at a time. */

import { createWindow } from "./heat.js";

const ROWS = 128;
const MAX_COLUMNS = 1600;
const MARGIN = 0.3; // of the width of the view, on each side, that is asked for ahead
const COARSE = "This page was saved to a file with a coarse timeline: bsp view shows it more finely.";

/* arrived(): windows have changed. say(text): a sentence for the reader. busy(flag): whether
   finer windows are on their way. */
/** @param {Context} context */
export function createHeatData({ api, store: { state } }, { arrived, say, busy }) {
  const windows = { base: null, fine: null };
  let key = ""; // run and axis of what is there
  let asking = false;
  let marked = "";

  function runKey() {
    return `${state.trace} ${state.run} ${state.axis}`;
  }

  function ask(name, query) {
    const library = state.filters.library ? 1 : null;
    return api.get(api.address(state.trace, state.run, name, { ...query, library }));
  }

  /* Loads the whole run, if it is not there; whether it was. */
  function load(pixels) {
    if (key === runKey()) return windows.base !== null;
    key = runKey();
    Object.assign(windows, { base: null, fine: null });
    const columns = Math.min(MAX_COLUMNS, Math.max(50, Math.round(pixels)));
    busy(true);
    say("The run is being summed up.");
    const size = api.offline ? { coarse: 1 } : { columns, rows: ROWS };
    receive(ask("timeline", { axis: state.axis, ...size }));
    return false;
  }

  async function receive(asked) {
    const wanted = key;
    try {
      const heat = createWindow(await asked);
      if (wanted !== key) return;
      windows.base = heat;
      say(heat.columns === 0 ? "The run has no supersteps." : "");
      arrived();
    } catch (error) {
      if (wanted !== key) return;
      key = ""; // the next time it is asked for again
      say(error.message);
    }
  }

  /* The whole axis. */
  function whole() {
    const { base } = windows;
    if (base === null) return [0, 1];
    const [low, high] = state.axis === "time" ? [base.begin_s, base.end_s] : [0, base.total];
    return [low, Math.max(high, low + 1e-9)];
  }

  /* Asks for the part that is seen, unless it is there as finely as possible. */
  async function refine(view, pixels) {
    if (asking || windows.base === null) return undefined;
    const wanted = missing(view(), pixels());
    busy(wanted !== null && !api.offline);
    if (wanted === null) return undefined;
    if (api.offline) return say(COARSE);
    asking = true;
    const run = key;
    try {
      const heat = createWindow(await ask("timeline", { axis: state.axis, ...wanted, rows: ROWS }));
      if (run === key) {
        windows.fine = heat;
        arrived();
      }
    } catch (error) {
      return say(error.message);
    } finally {
      asking = false;
    }
    return refine(view, pixels); // the reader may have moved on
  }

  /* The window to ask for: somewhat more than is seen; null if what is there is fine enough. */
  function missing([low, high], pixels) {
    const [from, to] = whole();
    const width = high - low;
    const fineEnough = (heat) => heat !== null && heat.low <= Math.max(low, from)
      && heat.high >= Math.min(high, to)
      && (finest(heat) || (heat.high - heat.low) / heat.columns <= 1.2 * width / pixels);
    if (fineEnough(windows.base) || fineEnough(windows.fine)) return null;
    const [least, most] = [Math.max(from, low - MARGIN * width), Math.min(to, high + MARGIN * width)];
    const columns = Math.min(MAX_COLUMNS, Math.ceil((most - least) / width * pixels));
    if (state.axis === "time") return { low: least, high: most, columns };
    return { low: Math.floor(least), high: Math.ceil(most), columns };
  }

  function finest(heat) {
    return state.axis === "superstep" && heat.columns >= heat.high - heat.low;
  }

  /* The window to which a place on the axis belongs. */
  function at(x) {
    const { base, fine } = windows;
    return fine !== null && fine.low <= x && x < fine.high ? fine : base;
  }

  /* Asks for the ranges of supersteps of a node, and shows them. A saved page knows only the
     cost centre of each column: it marks those that `under()` contains. */
  async function marks(node, under, show) {
    const wanted = `${runKey()} ${node} ${api.offline && windows.base !== null}`;
    if (marked === wanted) return;
    marked = wanted;
    show([]);
    if (node === null) return;
    if (api.offline) {
      show(coarseMarks(under()));
      return;
    }
    try {
      const { ranges } = await ask("marks", { node });
      if (marked === wanted) show(ranges);
    } catch (error) {
      say(error.message);
    }
  }

  function coarseMarks(under) {
    const { base } = windows;
    if (base === null) return [];
    return base.centres.flatMap((id, column) =>
      (under.has(id) ? [[base.first[column], base.last[column]]] : []));
  }

  /* Tells for whom the processes of a cell wait: a cost centre, and the process there. */
  async function waited({ heat, column, row }, tell) {
    const [low, high] = state.axis === "time" ? [heat.edges[column], heat.edges[column + 1]]
      : [heat.began_s[column], heat.finished_s[column]];
    try {
      const [most] = (await ask("waited", { row, low, high, rows: ROWS })).waited;
      if (most !== undefined) tell(most);
    } catch (error) {
      say(error.message);
    }
  }

  return { windows, load, whole, refine, at, marks, waited };
}
