/* The view "Compare": what changed since another run: a verdict, and a table of the nodes. */

import { createChangeGraph } from "./compare-graph.js";
import { createComparisonTable } from "./compare-table.js";
import { selection } from "./detail.js";
import { html } from "./dom.js";
import { comparedOf, othersOf } from "./runs.js";
import { segments } from "./segments.js";

const PRICES = ["machine", "g", "l", "speed"];
const AS_SAVED = "Times are those of the runs: this page was saved to a file, and bsp view compares "
  + "them on the Machine that is chosen.";

/** @param {HTMLElement} host @param {Context} context */
export function create(host, context) {
  const { api, loaded, store } = context;
  const { state, update } = store;
  const before = html("p", { class: "quiet before-run" });
  const choices = (label) => html("div", { class: "segments", role: "radiogroup", "aria-label": label });
  const [quantities, forms] = [choices("Change of"), choices("Show the comparison as")];
  const sorts = html("div", { class: "sorts", hidden: true }, html("span", {}, "Change of"), quantities);
  segments(forms, { table: "table", graph: "graph" }, "table", chooseForm);
  const verdict = html("p", { class: "comparison", "aria-live": "polite" });
  const conditions = html("p", { class: "quiet conditions" });
  const scaling = html("p", { class: "quiet scaling" });
  const note = html("p", { class: "quiet remark" });
  const tableHost = html("div", { class: "table-host" });
  const graphHost = html("div", { class: "graph-host", hidden: true });
  const select = (id) => update({ node: id, edge: null });
  const table = createComparisonTable(tableHost, select);
  let graph = null; // made when it is first shown
  host.replaceChildren(
    html("div", { class: "controls" }, before, forms),
    verdict, conditions, scaling, note, sorts, tableHost, graphHost);
  let answer = null;
  let quantity = "time";
  let wanted = "";

  /* What to ask: the run before, and the prices where the reader has chosen any, which a saved page lacks. */
  function query(key) {
    const prices = api.offline ? [] : PRICES.map((name) => [name, state[name]]);
    return { with: key, library: state.filters.library ? 1 : null, ...Object.fromEntries(prices) };
  }

  const selected = () => loaded.model.nodes[selection(loaded.model, state).node].id;

  function say(text) {
    answer = null;
    verdict.textContent = "";
    conditions.textContent = "";
    scaling.textContent = "";
    note.textContent = text;
    sorts.hidden = true;
    tableHost.replaceChildren();
    graphHost.hidden = true;
  }

  async function load(key) {
    const path = api.address(state.trace, state.run, "compare", query(key));
    wanted = path;
    if (answer === null) note.textContent = "Comparing the runs ...";
    try {
      const found = await api.get(path);
      if (wanted !== path) return;
      answer = found;
      note.textContent = api.offline && PRICES.some((name) => state[name] !== null) ? AS_SAVED : "";
      fill();
    } catch (error) {
      if (wanted === path) say(error.message);
    }
  }

  function fill() {
    verdict.textContent = `${answer.verdict}.`;
    conditions.textContent = answer.conditions.length
      ? `The runs differ beside the code: ${answer.conditions.join(", ")}.` : "";
    scaling.textContent = answer.scaling;
    const options = answer.quantities.map(({ name, title }) => [name, title]);
    sorts.hidden = false;
    segments(quantities, Object.fromEntries(options), quantity, (name) => {
      quantity = name;
      draw();
    });
    draw();
  }

  function chooseForm(form) {
    tableHost.hidden = form !== "table";
    if (answer !== null) draw();
  }

  /* Shows the comparison by the chosen quantity, as a table or a graph. */
  function draw() {
    const chosen = answer.quantities.find(({ name }) => name === quantity);
    graphHost.hidden = !tableHost.hidden;
    if (!tableHost.hidden) return table.fill(answer, chosen, selected());
    graph ??= createChangeGraph(graphHost, context);
    return graph.fill(loaded.model, answer, chosen);
  }

  /** @type {View["show"]} */
  function show(_, __, changed) {
    if (changed !== null && answer !== null && !["model", "compared", "filters"].some((name) => changed.has(name))) {
      table.choose(selected());
      if (!graphHost.hidden) graph.mark(loaded.model);
      return;
    }
    const others = othersOf(loaded.traces, state);
    const key = comparedOf(others, state);
    before.textContent = key === null ? "" : `compared with ${others.find((other) => other.key === key).text}`;
    if (others.length === 0) {
      say(api.offline ? "This page was saved to a file with one run: bsp view compares it with others."
        : "There is no other run to compare with: bsp view AFTER --compare BEFORE opens two traces.");
    } else if (key === null) {
      say("Choose in the header the run before, with which this run is compared.");
    } else {
      load(key);
    }
  }

  function hide() {
    graph?.hide();
    wanted = "";
  }

  return { show, hide };
}
