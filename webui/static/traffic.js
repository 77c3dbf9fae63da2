/* The view "Traffic": who sends how much to whom under the selected node, and how far the
   communication of supersteps departs from g h + l. */

import { selection } from "./detail.js";
import { button, html } from "./dom.js";
import { bytes, count, integer, label, seconds } from "./format.js";
import { createMatrix } from "./matrix.js";
import { processName } from "./names.js";
import { rampLegend } from "./ramp.js";
import { createScatter, markLegend } from "./scatter.js";
import { onTheme } from "./theme.js";
import { descendants } from "./visible.js";

const SAVED = "This page was saved to a file with the traffic of the whole run: bsp view shows "
  + "that of each node.";
const LINE = "A point is a superstep. The line is g h + l, fitted to this run: a point above it "
  + "took longer than its h explains.";

const NOTHING = "No process sent bytes to another one here.";
const NO_TIME = "No superstep of this run took time to communicate.";

/** @param {HTMLElement} host @param {Context} context */
export function create(host, context) {
  const { store, api } = context;
  const { state, update } = store;
  const title = html("h2", {});
  const facts = html("dl", { class: "facts-list" });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const legend = html("div");
  const note = html("p", { class: "quiet hint" });
  const departsTitle = html("h2", {}, "Departures from g h + l");
  const departsNote = html("p", { class: "quiet" });
  const pointText = html("p", { class: "readout", "aria-live": "polite" });
  const marks = html("div");
  const list = html("div", {});
  const matrix = createMatrix(read);
  const scatter = createScatter(readPoint, choosePoint);
  host.replaceChildren(
    html("section", { class: "matrix-part", "aria-label": "Matrix of bytes" },
      matrix.canvas,
      html("div", { class: "beside" }, title, legend, readout, facts, note)),
    html("section", { class: "scatter-part", "aria-label": "Departures from g h + l" },
      html("header", {}, departsTitle, marks), departsNote, scatter.canvas, pointText, list));

  /** @type {Model} */
  let model = null;
  let visible = false;
  let wanted = { traffic: "", departures: "" }; // the addresses whose answers are shown
  let answers = { traffic: null, departures: null };

  // -- data ------------------------------------------------------------------------------

  function node() {
    const { node: chosen } = selection(model, state);
    return chosen === model.root ? null : model.nodes[chosen].id;
  }

  function address(name, query) {
    return api.address(state.trace, state.run, name, { ...query, ...context.query() });
  }

  /* Asks for an answer, unless it is shown already; false while it is on its way. */
  async function ask(name, path, arrived, failed) {
    if (wanted[name] === path) return;
    wanted[name] = path;
    try {
      const answer = await api.get(path);
      if (wanted[name] !== path) return;
      answers[name] = answer;
      arrived();
    } catch (error) {
      if (wanted[name] === path) failed(error);
    }
  }

  function askTraffic() {
    const path = address("traffic", { node: node() });
    ask("traffic", path, showMatrix, (error) => {
      if (!(error instanceof api.Offline)) note.textContent = error.message;
      else {
        note.textContent = SAVED;
        ask("traffic", address("traffic", {}), () => showMatrix(SAVED), (other) => {
          note.textContent = other.message;
        });
      }
    });
  }

  function askDepartures() {
    ask("departures", address("departures", {}), showDepartures, (error) => {
      departsNote.textContent = error.message;
    });
  }

  // -- the matrix --------------------------------------------------------------------------

  function showMatrix(sentence = "") {
    const { traffic } = answers;
    const { least, most } = matrix.show(traffic, model.run.run.hosts);
    note.textContent = sentence;
    const texts = most === least ? ["", bytes(most)] : [least, Math.sqrt(least * most), most].map(bytes);
    legend.replaceChildren(most > 0 ? rampLegend("bytes from one process to another", texts)
      : html("p", { class: "quiet" }, NOTHING));
    showFacts(traffic, sentence !== "");
  }

  function showFacts(traffic, isWhole) {
    const chosen = isWhole ? model.root : selection(model, state).node;
    title.textContent = `Traffic of ${label(model.nodes[chosen])}`;
    const greatest = ({ most, pid }) => {
      const at = most.indexOf(Math.max(...most));
      return most[at] > 0 ? `${bytes(most[at])}, ${processName(model.run.run.hosts, pid[at])}` : "0 B";
    };
    const self = traffic.self.reduce((a, b) => a + b, 0);
    const rows = [
      ["all", `${bytes(traffic.bytes)} in ${count(traffic.messages, "message")}`],
      ["most sent by", greatest(traffic.h_out)], ["most received by", greatest(traffic.h_in)],
      ["to themselves", `${bytes(self)}, not part of h`],
    ];
    facts.replaceChildren(...rows.flatMap(([name, value]) =>
      [html("dt", {}, name), html("dd", {}, value)]));
  }

  function read(text, more = "") {
    readout.replaceChildren(...(text === null ? [] : [html("b", {}, text), html("span", {}, more)]));
  }

  // -- departures --------------------------------------------------------------------------

  function nodeName(id) {
    const position = model.indexOf(id);
    return position === null ? id : label(model.nodes[position]);
  }

  /* Whether a point is a superstep of the selected node. */
  function passes(ids) {
    const chosen = node();
    if (chosen === null) return () => false;
    const under = new Set([...descendants(model, model.indexOf(chosen))].map((at) => model.nodes[at].id));
    return (point) => under.has(ids[point]);
  }

  function showDepartures() {
    const { departures } = answers;
    const isMeasured = departures.points.comm_s.some((time) => time > 0);
    departsNote.textContent = isMeasured ? departures.note || LINE : NO_TIME;
    for (const part of [scatter.canvas, marks, list]) part.hidden = !isMeasured;
    marks.replaceChildren(markLegend());
    scatter.show(departures, passes(departures.points.node));
    readPoint(null);
    list.replaceChildren(centres(departures));
  }

  function over(points, point) {
    const value = points.comm_s[point] - points.predicted_s[point];
    return `${value < 0 ? "−" : "+"}${seconds(Math.abs(value))}`;
  }

  function superstep(points, point) {
    const own = `superstep ${integer(points.superstep[point])}`;
    const where = model.run.run.backend === "mpi4py" ? "some of the processes" : "a sub-group";
    return points.group[point] === 0 ? own : `${own} of ${where}, in ${integer(points.root[point])}`;
  }

  function readPoint(point) {
    if (point === null) return pointText.replaceChildren();
    const { points, patterns } = answers.departures;
    const many = points.count[point] > 1 ? ` (stands for ${integer(points.count[point])} like it)` : "";
    const [first, ...rest] = superstep(points, point);
    return pointText.replaceChildren(
      html("b", {}, `${first.toUpperCase()}${rest.join("")}${many}`), html("span", {}, nodeName(points.node[point])),
      html("span", {}, `h ${bytes(points.h[point])}, ${patterns[points.pattern[point]]}`),
      html("span", {}, `${seconds(points.comm_s[point])}, by g h + l ${seconds(points.predicted_s[point])}: ${over(points, point)}`));
  }

  function choosePoint(point) {
    const id = answers.departures.points.node[point];
    if (model.indexOf(id) !== null) update({ node: id, edge: null });
  }

  function centres({ centres: found }) {
    const head = (text, kind = null) => html("th", { scope: "col", class: kind }, text);
    const rows = found.map(({ node: id, supersteps, over_s: value }) => html("tr", {},
      html("td", { class: "text" }, button(nodeName(id), () => update({ node: id, edge: null }))),
      html("td", {}, integer(supersteps)),
      html("td", {}, `${value < 0 ? "−" : "+"}${seconds(Math.abs(value))}`)));
    return html("table", { class: "list" }, html("caption", {}, "Cost centres that depart most"),
      html("thead", {}, html("tr", {}, head("cost centre", "text"), head("supersteps"), head("departs"))),
      html("tbody", {}, ...rows));
  }

  // -- the whole ---------------------------------------------------------------------------

  onTheme(() => {
    if (!visible) return;
    if (answers.traffic !== null) showMatrix(note.textContent === SAVED ? SAVED : "");
    if (answers.departures !== null) showDepartures();
  });

  /** @type {View["show"]} */
  function show(next, _, changed) {
    model = next;
    visible = true;
    askTraffic();
    askDepartures();
    if (answers.departures !== null && wanted.departures === address("departures", {})
      && (changed === null || ["model", "node", "edge"].some((name) => changed.has(name)))) showDepartures();
  }

  return {
    show,
    hide() {
      visible = false;
    },
  };
}
