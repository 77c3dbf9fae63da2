/* The view "Traffic": who sends how much to whom under the selected node, and how far the
   communication of supersteps departs from g h + l. */

import { selection } from "./detail.js";
import { button, html } from "./dom.js";
import { bytes, count, integer, label, seconds } from "./format.js";
import { createMatrix } from "./matrix.js";
import { processName } from "./names.js";
import { rampLegend } from "./ramp.js";
import { createScatter, markLegend } from "./scatter.js";
import { segments } from "./segments.js";
import { onTheme } from "./theme.js";
import { descendants } from "./visible.js";

const SCALES = { log: "logarithmic", linear: "linear" };
const SAVED = "This page was saved to a file with the traffic of the whole run: bsp view shows "
  + "that of each node.";
const ZOOM = "Double-click a block to see its processes, or press Enter.";
const CENTRE = "cost centre";
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
  const scales = html("div", { class: "segments", role: "radiogroup", "aria-label": "Scale" });
  const whole = button("All processes", () => zoom(null, null), { class: "plain-button", hidden: true });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const legend = html("div");
  const note = html("p", { class: "quiet hint" });
  const departsTitle = html("h2", {}, "Departures from g h + l");
  const departsNote = html("p", { class: "quiet" });
  const pointText = html("p", { class: "readout", "aria-live": "polite" });
  const marks = html("div");
  const lists = html("div", { class: "lists" });
  const matrix = createMatrix(read, zoom);
  const scatter = createScatter(readPoint, choosePoint);
  host.replaceChildren(
    html("section", { class: "matrix-part", "aria-label": "Matrix of bytes" },
      matrix.canvas,
      html("div", { class: "beside" }, title, html("div", { class: "row" }, scales, whole), legend, readout, facts, note)),
    html("section", { class: "scatter-part", "aria-label": "Departures from g h + l" },
      html("header", {}, departsTitle, marks), departsNote, scatter.canvas, pointText, lists));

  /** @type {Model} */
  let model = null;
  let visible = false;
  let scale = "log";
  let range = { senders: null, receivers: null };
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
    const path = address("traffic", { node: node(), ...range });
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
    const { least, most } = matrix.show(traffic, scale === "log", model.run.run.hosts);
    note.textContent = sentence || (traffic.senders.size > 1 ? ZOOM : "");
    const middle = scale === "log" ? Math.sqrt(least * most) : most / 2;
    const lowest = scale === "log" ? least : 0;
    const texts = most === lowest ? ["", bytes(most)] : [lowest, middle, most].map(bytes);
    legend.replaceChildren(most > 0 ? rampLegend("bytes from one process to another", texts)
      : html("p", { class: "quiet" }, NOTHING));
    whole.hidden = range.senders === null;
    segments(scales, SCALES, scale, (value) => {
      scale = value;
      showMatrix(sentence);
    });
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

  function zoom(senders, receivers) {
    range = { senders, receivers };
    askTraffic();
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
    for (const part of [scatter.canvas, marks, lists]) part.hidden = !isMeasured;
    marks.replaceChildren(markLegend());
    scatter.show(departures, passes(departures.points.node));
    readPoint(null);
    lists.replaceChildren(farthest(departures), centres(departures));
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

  function table(caption, heads, rows) {
    return html("table", { class: "list" }, html("caption", {}, caption),
      html("thead", {}, html("tr", {}, ...heads.map((text) =>
        html("th", { scope: "col", class: text === CENTRE ? "text" : null }, text)))),
      html("tbody", {}, ...rows));
  }

  function chooseNode(id) {
    return html("td", { class: "text" }, button(nodeName(id), () => update({ node: id, edge: null })));
  }

  function farthest({ farthest: points, patterns }) {
    const rows = points.h.map((h, point) => html("tr", {},
      html("td", {}, button(integer(points.root[point]), () => showInTimeline(points.root[point]), {
        title: "Show this superstep in the timeline", "aria-label": `Superstep ${points.root[point]} in the timeline`,
      })),
      chooseNode(points.node[point]), html("td", {}, bytes(h)),
      html("td", {}, patterns[points.pattern[point]]), html("td", {}, over(points, point))));
    return table("Supersteps that depart most", ["superstep", CENTRE, "h", "pattern", "departs"], rows);
  }

  function centres({ centres: found }) {
    const rows = found.map((centre) => html("tr", {}, chooseNode(centre.node),
      html("td", {}, integer(centre.supersteps)),
      html("td", {}, `${centre.over_s < 0 ? "−" : "+"}${seconds(Math.abs(centre.over_s))}`)));
    return table("Cost centres that depart most", [CENTRE, "supersteps", "departs"], rows);
  }

  function showInTimeline(step) {
    update({ view: "timeline", axis: "superstep", span: [Math.max(0, step - 15), step + 16] });
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
    if (changed !== null && ["trace", "run"].some((name) => changed.has(name))) {
      range = { senders: null, receivers: null };
    }
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
