/* The page of a learnt program: asks for the prediction at the point of the sliders, and shows it. */

import { get } from "./api.js";
import { createChain } from "./chain.js";
import { createCurves } from "./curves.js";
import { byId, html } from "./dom.js";
import { label, seconds } from "./format.js";
import { create as createGraph } from "./graph.js";
import { explainPage } from "./help.js";
import { listenForKeys, shortcut } from "./keys.js";
import { createLegend } from "./legend.js";
import { create as createMachine } from "./machine.js";
import { pageButtons } from "./page-buttons.js";
import { POINT, allowed, largest, pointText, valueText } from "./points.js";
import { predictions } from "./predict.js";
import { createPredictedDetail, texts } from "./predicted-detail.js";
import { MEASURES, createPredicted, hurtsFirst } from "./predicted-model.js";
import { ratesOf } from "./rates.js";
import { startSides } from "./sides.js";
import { createSliders } from "./sliders.js";
import { choice, declareFields, followAddress, state, subscribe, update } from "./store.js";
import { startTheme } from "./theme.js";
import { createVerdict } from "./verdict.js";

const OF_THE_RUNS = "own";
const PRICED_BY = ["point", "reference", "machine", "g", "l", "speed"];
/* The name of a Machine in the address; null, the Machine of the runs, need not be the default. */
const MACHINE = {
  read: (name) => (name === OF_THE_RUNS ? null : name), write: (name) => name ?? OF_THE_RUNS,
};
const HELP = "Each box is a function or a line that ends supersteps, with the time that its laws "
  + "predict at the point of the sliders. Its shade is the square root of its part of the run. "
  + "By default it shows the time that is lost on the way from the reference's number of "
  + "processes to p: what the darkest box does is the first to hurt.";

/* The point of the state, with the values that the page opens with for what it leaves out. */
function pointOf(data, given) {
  const found = largest(data.variables);
  const asked = { ...found, ...data.at, ...given };
  return Object.fromEntries(data.variables.map((variable) =>
    [variable.name, allowed(variable, asked[variable.name], data.most_processes)]));
}

function band(model) {
  const { low, high } = model.prediction;
  return Number.isFinite(high) ? ` (${seconds(low)} to ${seconds(high)})` : "";
}

function timeSentence(model) {
  const { prediction, speedup } = model;
  const least = prediction.refused.size ? "at least " : "";
  const faster = speedup === null ? "" : `, ${Number(speedup.toPrecision(3))} times as fast as one process`;
  const node = model.chain("time").at(-1) ?? model.root;
  return {
    node, superstep: null, seconds: prediction.total,
    text: `${pointText(prediction.point)} on ${model.rates.source || "its Machine"}: ${least}${
      seconds(prediction.total)}${band(model)}${faster}.`,
  };
}

function hurtSentence(model) {
  const first = hurtsFirst(model);
  if (first === null) return null;
  const [from, to] = [model.start.point.p, model.prediction.point.p];
  const part = model.prediction.total > 0 ? model.start.total / model.prediction.total : 0;
  return {
    node: first.node, superstep: null, seconds: first.seconds,
    text: `${label(model.nodes[first.node])} hurts first: it takes ${seconds(first.seconds)} more than `
      + `a perfect speedup from ${valueText(from)} to ${valueText(to)} processes allows; the run is ${
        Number(part.toPrecision(3))} times as fast, and not ${Number((to / from).toPrecision(3))} times.`,
  };
}

function rollOffSentence(model) {
  const { rollOff, cause, predictions } = model.scaling;
  const because = cause === null ? "" : `, because of ${label(model.nodes[cause])}`;
  return {
    node: cause, superstep: null, seconds: model.prediction.total,
    text: rollOff === null
      ? `More processes help up to p = ${valueText(predictions.at(-1).point.p)}, the most that was tried.`
      : `More than ${valueText(rollOff)} processes no longer help${because}.`,
  };
}

/* That processes share cores, where more of them are predicted than the Machine has. */
function sharing({ cores, slowed, prediction }) {
  const { p } = prediction.point;
  if (cores === null || p <= cores) return [];
  return [{
    node: null, superstep: null, seconds: 0,
    text: `${valueText(p)} processes share ${cores} cores: computation takes ${
      Number(slowed.toPrecision(3))} times as long as recorded.`,
  }];
}

/* That the runs are too short, or the run that would narrow the band. */
function narrowing({ next_run: run, too_short_s: short }) {
  const text = short !== null
    ? `Too short to tell: these runs take at most ${seconds(short)}; make ones of 50 ms.`
    : run === null ? "" : `This run would narrow it most: ${run}.`;
  return text ? [{ node: null, superstep: null, seconds: 0, text }] : [];
}

/* What is extrapolated, and what is not counted. */
function doubts(model) {
  const { point, refused } = model.prediction;
  const beyond = model.data.variables.filter(({ name, values }) =>
    point[name] > values.at(-1) || point[name] < values[0]);
  const found = beyond.length === 0 ? [] : [{
    node: null, superstep: null, seconds: 0,
    text: `Extrapolated beyond the ${model.data.runs} runs: ${beyond.map(({ name, values }) =>
      `${name} = ${valueText(point[name])}, where they have ${valueText(values[0])} to ${
        valueText(values.at(-1))}`).join("; ")}.`,
  }];
  for (const [node, why] of refused) {
    found.push({
      node, superstep: null, seconds: 0, text: `Not counted: ${label(model.nodes[node])}: ${why}.`,
    });
  }
  return [...found, ...narrowing(model)];
}

function measures(context) {
  const host = byId("measures");
  const inputs = Object.entries(MEASURES).map(([name, { title, about }]) => {
    const input = html("input", {
      type: "radio", name: "measure", value: name, onchange: () => context.store.update({ metric: name }),
    });
    return { name, input, element: html("label", { title: about }, input, html("span", {}, title)) };
  });
  host.replaceChildren(html("h3", {}, "Shades"), ...inputs.map(({ element }) => element));
  Object.entries(MEASURES).forEach(([name, { title }], position) => {
    shortcut(String(position + 1), `Shades: ${title}`, () => context.store.update({ metric: name }),
      { section: "Shades" });
  });
  return { show: ({ metric }) => inputs.forEach(({ name, input }) => { input.checked = name === metric; }) };
}

function header(data) {
  const ranges = data.variables.map(({ name, values, origin }) => html("span", {
    title: values.map(valueText).join(", "),
  }, `${name}${origin ? ` (${origin})` : ""} = ${values.length > 1
    ? `${valueText(values[0])} to ${valueText(values.at(-1))}` : valueText(values[0])}`));
  byId("facts").replaceChildren(
    html("div", { class: "program" }, html("h1", {}, data.program)),
    html("p", { class: "facts" },
      html("span", {}, `predicted from ${data.runs} runs`), ...ranges));
  byId("actions").replaceChildren(...pageButtons());
}

async function start() {
  const data = await get("model.json");
  declareFields({
    metric: ["scaling", choice(...Object.keys(MEASURES))], point: [null, POINT],
    reference: [null, POINT], machine: [data.machine, MACHINE],
  });
  startTheme();
  explainPage(HELP);
  followAddress();
  /** @type {any} */
  const model = createPredicted(data);
  /** @type {any} */
  const context = {
    store: { state, update, subscribe }, api: { offline: true }, texts,
    outcome: () => [html("p", {}, html("b", {}, `The run takes ${seconds(model.prediction.total)}`),
      band(model), " with these figures.")],
  };
  header(data);
  startSides();
  const sliders = createSliders(context, data);
  const curves = createCurves(context, data);
  const choices = measures(context);
  const graph = createGraph(byId("view-graph"), context);
  const parts = [
    createMachine(byId("machine"), context), createVerdict({ ...context, isLong: true }),
    createLegend({ titleOf: (name) => MEASURES[name].title, meaningOf: () => "of the time of the run" }),
    createChain(context), createPredictedDetail(context), choices,
  ];

  let asked = 0; // answers may come in another order

  async function place() {
    const reference = state.reference === null ? largest(data.variables)
      : { ...largest(data.variables), ...state.reference };
    const point = pointOf(data, state.point);
    const turn = asked += 1;
    const found = await predictions(data, point, state.reference && reference, state);
    if (turn !== asked) return false;
    model.place(found, ratesOf(model.run, state));
    model.verdict.sentences = [timeSentence(model), hurtSentence(model), rollOffSentence(model),
      ...sharing(model), ...doubts(model)].filter(Boolean);
    sliders.show({ point, reference }, state.reference === null);
    curves.show(model);
    return true;
  }

  async function show(_, changed) {
    const known = changed === null ? null : new Set(changed);
    if (known === null || PRICED_BY.some((name) => known.has(name))) {
      if (!await place()) return;
      known?.add("model");
    }
    if (known === null || ![...known].every((name) => name === "zoom")) {
      choices.show(state);
      for (const part of parts) if (part !== choices) part.show(model, state, known);
    }
    graph.show(model, state, known);
  }

  listenForKeys();
  const told = (error) => { byId("status").textContent = error.message; };
  subscribe((...changes) => show(...changes).catch(told));
  await show(state, null);
}

start().catch((error) => { byId("status").textContent = error.message; });
