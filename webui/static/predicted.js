/* The page of a learnt program: asks for the prediction at the point of the sliders, and shows it. */

import { get, offline, withQuery } from "./api.js";
import { createChain } from "./chain.js";
import { createCurves } from "./curves.js";
import { createDetail } from "./detail.js";
import { byId, html } from "./dom.js";
import { label, place, scoreText, seconds } from "./format.js";
import { create as createGraph } from "./graph.js";
import { explainPage } from "./help.js";
import { listenForKeys, shortcut } from "./keys.js";
import { createLegend } from "./legend.js";
import { create as createMachine } from "./machine.js";
import { createModel } from "./model.js";
import { pageButtons } from "./page-buttons.js";
import { ratesOf } from "./rates.js";
import { startSides } from "./sides.js";
import { createSliders } from "./sliders.js";
import { choice, declareFields, followAddress, state, subscribe, update } from "./store.js";
import { startTheme } from "./theme.js";
import { createVerdict } from "./verdict.js";

const OF_THE_RUNS = "own";
const ASKED_BY = ["point", "machine", "g", "l", "speed"];
/* The name of a Machine in the address; null, the Machine of the runs, need not be the default. */
const MACHINE = {
  read: (name) => (name === OF_THE_RUNS ? null : name), write: (name) => name ?? OF_THE_RUNS,
};
/* How the state keeps a point: n:1024,p:8; values are texts, which the server reads. */
const POINT = {
  read: (text) => Object.fromEntries(text.split(",").map((part) => part.split(":"))),
  write: (point) => Object.entries(point).map((each) => each.join(":")).join(","),
};
const HELP = "Each box is a function or a line that ends supersteps, with the time that its laws "
  + "predict at the point of the sliders. Its shade is the square root of its part of the run. "
  + "By default it shows the time that is lost on the way from the processes of the "
  + "largest run to p: what the darkest box does is the first to hurt.";

/* What the server says of what the state names, with some of it changed. */
function predictions(data, changes = {}) {
  const { point, machine, g, l, speed } = { ...state, ...changes };
  return get(withQuery("predicted.json", {
    point: point && POINT.write(point),
    machine: machine === data.machine ? null : machine ?? OF_THE_RUNS, g, l, speed,
  }));
}

/* The rows of a node or edge: seconds here and in the largest run. */
function rowsOf({ predicted: { tables } }, { node, edge }) {
  return edge === null ? tables.nodes[node] : tables.edges[edge];
}

/* The seconds of a node or edge, and the laws of a cost centre. */
function aboutNode(model, chosen) {
  const text = (value) => (typeof value === "string" ? value : seconds(value));
  const heads = ["", "here", "largest run"].map((title) => html("th", { scope: "col" }, title));
  const rows = rowsOf(model, chosen).map(([title, ...values]) => html("tr", {},
    html("th", { scope: "row" }, title), ...values.map((value) => html("td", {}, text(value)))));
  const laws = (model.run.laws[chosen.node] ?? []).flatMap(({ callers, rows: found }) => [
    html("h3", {}, callers ? `Laws in ${callers}` : "Laws"),
    html("dl", {}, ...found.flatMap(([title, law, sort]) =>
      [html("dt", {}, title), html("dd", { class: sort }, law)])),
  ]);
  return [html("table", { class: "costs booked" }, html("thead", {}, html("tr", {}, ...heads)),
    html("tbody", {}, ...rows)), html("div", { id: "laws" }, ...laws)];
}

/* The texts of the tooltips. */
const TEXTS = {
  nodeText: (model, node, measure) => tooltip(model, { node, edge: null }, measure,
    [label(model.nodes[node]), place(model.nodes[node])], model.score(node, measure)),
  lineText(model, { from, to, edge }, measure) {
    const title = `${label(model.nodes[from])} → ${label(model.nodes[to])}`;
    return edge === null ? [title, "Calls through nodes that are not shown."]
      : tooltip(model, { node: to, edge }, measure, [title], model.edgeScore(edge, measure));
  },
};

function tooltip(model, chosen, measure, heads, score) {
  return [...heads, `${model.run.measures[measure][0]}: ${scoreText(score, measure)}`,
    ...rowsOf(model, chosen).slice(0, -1).map(([title, here, there]) =>
      `${title} ${seconds(here)}, in the largest run ${seconds(there)}`)];
}

function measures({ store }, data) {
  const inputs = Object.entries(data.measures).map(([name, [title, about]], position) => {
    const choose = () => store.update({ metric: name });
    const input = html("input", { type: "radio", name: "measure", value: name, onchange: choose });
    shortcut(String(position + 1), `Shades: ${title}`, choose, { section: "Shades" });
    return { input, element: html("label", { title: about }, input, html("span", {}, title)) };
  });
  byId("measures").replaceChildren(html("h3", {}, "Shades"), ...inputs.map(({ element }) => element));
  return { show: (_, { metric }) => inputs.forEach(({ input }) => { input.checked = input.value === metric; }) };
}

async function start() {
  const data = await get("model.json");
  declareFields({
    metric: ["scaling", choice(...Object.keys(data.measures))], point: [null, POINT], machine: [data.machine, MACHINE],
  });
  startTheme();
  explainPage(HELP);
  followAddress();
  const say = (text) => { byId("status").textContent = text; };
  /** @type {any} */
  let model = null;
  /** @type {any} */
  const context = {
    store: { state, update, subscribe }, api: { offline: true }, isSaved: offline, texts: TEXTS, aboutNode,
    outcome: ({ predicted: { total, band } }) => [html("p", {},
      html("b", {}, `The run takes ${seconds(total)}`), `${band} with these figures.`)],
    ask: (changes) => predictions(data, changes), say,
  };
  byId("facts").replaceChildren(html("div", { class: "program" }, html("h1", {}, data.program)),
    html("p", { class: "facts" }, ...data.facts.map((text) => html("span", {}, text))));
  byId("actions").replaceChildren(...pageButtons());
  startSides();
  const parts = [
    createSliders(context, data), createCurves(context), measures(context, data),
    createMachine(byId("machine"), context), createVerdict({ ...context, isLong: true }),
    createLegend({ titleOf: (name) => data.measures[name][0], meaningOf: () => "of the time of the run" }),
    createChain(context), createDetail(context),
  ];
  const graph = createGraph(byId("view-graph"), context);

  /* Asks for what has changed, and shows it; answers may come in another order. */
  let asked = 0;
  async function show(_, changed) {
    const known = new Set(changed);
    if (model === null || ASKED_BY.some((name) => known.has(name))) {
      const turn = asked += 1;
      const predicted = await predictions(data);
      if (turn !== asked) return;
      model ??= createModel({ ...data, ...predicted });
      model.tell(predicted);
      Object.assign(model, { predicted, rates: ratesOf(data, state) });
      known.add("model");
    }
    if (![...known].every((name) => name === "zoom")) for (const part of parts) part.show(model, state, known);
    graph.show(model, state, changed === null ? null : known);
  }

  listenForKeys();
  subscribe((...changes) => show(...changes).catch((error) => say(error.message)));
  await show(state, null);
}

start().catch((error) => { byId("status").textContent = error.message; });
