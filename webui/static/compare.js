/* The view "Compare": what changed since another run: a verdict, and a table of the nodes. */

import { createComparisonTable } from "./compare-table.js";
import { html } from "./dom.js";
import { processes, seconds } from "./format.js";

const PRICES = ["machine", "g", "l", "speed"];
const PATIENCE = 150; // ms until a comparison is priced anew while a slider moves

/* The runs of all traces, by the key with which the address names them. */
function runsOf(traces) {
  return traces.flatMap(({ id, name, runs }) => runs.map((run, number) => ({
    key: `${id}.${number}`, trace: id, number,
    text: `${name}, ${run.title}: ${processes(run.nprocs)}, ${seconds(run.elapsed_s)}`,
  })));
}

/* The run to compare with where none is chosen: the one of the same number in another trace,
   or the only other one. */
function usual(others, { trace, run }) {
  const same = others.find((other) => other.trace !== trace && other.number === run);
  return (same ?? (others.length === 1 ? others[0] : null))?.key ?? null;
}

export function create(host, { api, loaded, store }) {
  const { state, update } = store;
  const picker = html("select", {
    "aria-label": "Run before", onchange: () => update({ compared: picker.value || null }),
  });
  const sorts = html("div", { class: "sorts", role: "radiogroup", "aria-label": "Sorted by the change of" });
  const verdict = html("p", { class: "comparison", "aria-live": "polite" });
  const conditions = html("p", { class: "quiet conditions" });
  const note = html("p", { class: "quiet note" });
  const tableHost = html("div", { class: "table-host" });
  const table = createComparisonTable(tableHost, (id) => update({ node: id, edge: null }));
  host.replaceChildren(
    html("div", { class: "controls" }, html("label", {}, "Before: ", picker), sorts),
    verdict, conditions, note, tableHost);
  let answer = null;
  let quantity = "time";
  let timer = null;
  let wanted = "";

  /* What to ask: the run before, and the prices where the reader has chosen any. */
  function query(model, key) {
    const chosen = PRICES.some((name) => state[name] !== null);
    const { g, l, rule, ratio } = model.rates;
    return {
      with: key, library: state.filters.library ? 1 : null,
      ...(chosen ? { g, l, rule, ratio } : {}),
    };
  }

  /* The node whose details are shown: the end of the critical path where none is chosen. */
  function selected() {
    const { model } = loaded;
    const known = model.indexOf(state.node) ?? model.chain(state.metric).at(-1) ?? model.root;
    return model.nodes[known].id;
  }

  function offer() {
    const others = runsOf(loaded.traces)
      .filter(({ key }) => key !== `${state.trace}.${state.run}`);
    const known = others.find(({ key }) => key === state.compared);
    const key = known?.key ?? usual(others, state);
    const options = others.map((other) => html("option", { value: other.key }, other.text));
    if (key === null) options.unshift(html("option", { value: "" }, "choose a run"));
    picker.replaceChildren(...options);
    picker.value = key ?? "";
    picker.disabled = others.length === 0;
    return { key, others };
  }

  function say(text) {
    answer = null;
    verdict.textContent = "";
    conditions.textContent = "";
    note.textContent = text;
    sorts.replaceChildren();
    tableHost.replaceChildren();
  }

  async function load(model, key) {
    const full = query(model, key);
    const path = api.address(state.trace, state.run, "compare", full);
    wanted = path;
    try {
      const [found, text] = await ask(path, { with: key, library: full.library });
      if (wanted !== path) return;
      answer = found;
      note.textContent = text;
      fill();
    } catch (error) {
      if (wanted === path) say(error.message);
    }
  }

  /* The comparison; a saved page has it only at the runs' own prices. */
  async function ask(path, own) {
    try {
      return [await api.get(path), ""];
    } catch (error) {
      const other = api.address(state.trace, state.run, "compare", own);
      if (!(error instanceof api.Offline) || other === path) throw error;
      const text = "Losses are priced as recorded: this page was saved to a file, and bsp view "
        + "prices them by the Machine that is chosen.";
      return [await api.get(other), text];
    }
  }

  function fill() {
    verdict.textContent = `${answer.verdict}.`;
    conditions.textContent = answer.conditions.length
      ? `The runs differ beside the code: ${answer.conditions.join(", ")}.` : "";
    sorts.replaceChildren(html("span", {}, "Sorted by the change of"), ...answer.quantities.map(choice));
    sortTable();
  }

  function choice({ name, title }) {
    const input = html("input", {
      type: "radio", name: "change-of", value: name, checked: name === quantity,
      onchange: () => { quantity = name; sortTable(); },
    });
    return html("label", {}, input, html("span", {}, title));
  }

  function sortTable() {
    const chosen = answer.quantities.find(({ name }) => name === quantity);
    table.fill(answer, chosen, selected());
  }

  function show(model, _, changed) {
    if (changed !== null && answer !== null && !["model", "compared", "filters"].some((name) => changed.has(name))) {
      table.choose(selected());
      return;
    }
    const { key, others } = offer();
    clearTimeout(timer);
    if (others.length === 0) {
      say(api.offline ? "This page was saved to a file with one run: bsp view compares it with others."
        : "There is no other run to compare with: bsp view AFTER --compare BEFORE opens two traces.");
    } else if (key === null) {
      say("Choose the run before, with which this run is compared.");
    } else {
      timer = setTimeout(load, changed === null || answer === null ? 0 : PATIENCE, model, key);
    }
  }

  function hide() {
    clearTimeout(timer);
    wanted = "";
  }

  return { show, hide };
}
