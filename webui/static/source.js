/* The view "Source": the function around the selected node, with what each line costs that
   ended supersteps or called a function that did. Where the run was sampled, each line has its
   seconds, and a cost centre the functions that were executed in its supersteps. */

import { selection } from "./detail.js";
import { html } from "./dom.js";
import { below, executed } from "./executed.js";
import { bytes, integer, isInSeconds, label, pathTitle, scoreText, seconds } from "./format.js";
import { costsOf } from "./lines.js";
import { bin } from "./model.js";

const COLUMNS = [["supersteps", "Supersteps that ended there"],
  ["h", "Sum of the greatest h of each superstep"]];

/* Columns of a run that was sampled: the parts of the seconds that are added up, and a title. */
/** @type {[string, string[], string][]} */
const SAMPLED = [
  ["computing", ["computing"], "Computing here and in what is called here; average of the processes"],
  ["waiting", ["waiting", "calls"], "In syncs and communication calls; average of the processes"],
  ["blocked", ["blocked", "no_core"],
    "Asleep, waiting for a disk or a lock, or without a core; average of the processes"],
];

/* The cells with the seconds of a line; none where nothing was sampled. */
function sampledCells(answer, taken) {
  if (!answer.sampled) return [];
  return SAMPLED.map(([name, parts]) => {
    const sum = taken ? parts.reduce((total, part) => total + taken[part], 0) : 0;
    return html("td", { class: "margin", "data-part": name }, sum > 0 ? seconds(sum) : "");
  });
}

/* The functions that some function called, to be unfolded. */
function tree(model, numbers, caller) {
  const called = numbers.filter((number) => executed(model, number).caller === caller);
  return called.length === 0 ? null : html("ul", {}, ...called.map((number) => {
    const { name, file, line, seconds: value } = executed(model, number);
    const text = `${name}: ${seconds(value)}`;
    const deeper = tree(model, numbers, number);
    return html("li", { title: `${file}:${line}` }, deeper === null ? text
      : html("details", {}, html("summary", {}, text), deeper));
  }));
}

/* The functions that were executed in the supersteps that end at a node. */
function unfolded(model, node) {
  const functions = tree(model, below(model, node), node);
  return functions === null ? null : html("section", { class: "unfolded" },
    html("h3", {}, "Functions executed in the supersteps that end here, average of the processes"),
    functions);
}

function code(pieces) {
  return html("td", { class: "code" }, ...pieces.map((piece) =>
    (typeof piece === "string" ? piece : html("span", { class: `tok-${piece[0]}` }, piece[1]))));
}

/** @param {HTMLElement} host @param {Context} context */
export function create(host, { store, api, query }) {
  let asked = null; // address of the answer that is shown or on its way
  let answer = null;
  let drawn = null; // id of the node whose line was scrolled to
  let current = null; // model and state

  function select(model, node, text) {
    return html("button", {
      type: "button", title: label(model.nodes[node]),
      onclick: () => store.update({ node: model.nodes[node].id, edge: null }),
    }, text);
  }

  /* The cells in the margin of a line. */
  function margin(model, path, found) {
    if (!found) return [html("td", { colspan: 3 })];
    const { nodes: [node], parts } = found;
    if (parts.length === 0) {
      return [html("td", { colspan: 3, class: "margin" }, select(model, node, `→ ${label(model.nodes[node])}`))];
    }
    const sum = (name) => parts.reduce((total, part) => total + part[name], 0);
    const addsUp = isInSeconds(path) || path === "sync";
    const score = addsUp ? sum("score") : Math.max(...parts.map((part) => part.score));
    return [
      html("td", { class: "margin", "data-bin": bin(model.shadeOf(score, path)) }, select(model, node, scoreText(score, path))),
      html("td", { class: "margin" }, integer(sum("count"))),
      html("td", { class: "margin" }, bytes(sum("h"))),
    ];
  }

  function rowsOf(model, { metric }, node, number) {
    const { first, lines } = answer.excerpts[number];
    const { kind, line: chosen } = model.nodes[node];
    const costs = costsOf(model, answer, number, metric);
    const taken = new Map(answer.excerpts[number].seconds);
    return lines.map((pieces, offset) => {
      const line = first + offset;
      const found = costs.get(line);
      const isChosen = kind === "cost_centre" && line === chosen;
      return html("tr", {
        class: found?.ends ? "ends" : null, "data-line": line, "aria-current": isChosen ? "true" : null,
      }, ...margin(model, metric, found), ...sampledCells(answer, taken.get(line)),
      html("th", { scope: "row" }, String(line)), code(pieces));
    });
  }

  function draw() {
    const { model, state } = current;
    const { node } = selection(model, state);
    const number = answer.of[node];
    const { file, note } = answer.excerpts[number];
    const rows = rowsOf(model, state, node, number);
    const columns = [[pathTitle(state.metric), "What the shades show"], ...COLUMNS,
      ...(answer.sampled ? SAMPLED : []).map(([text, , title]) => [text, title])];
    const head = html("tr", {}, ...columns.map(([text, title]) =>
      html("th", { scope: "col", title }, text)), html("td", { colspan: 2 }));
    host.replaceChildren(...[
      html("div", { class: "about" }, html("h2", {}, file || label(model.nodes[node])),
        note ? html("p", { class: "gap" }, note) : null),
      unfolded(model, node),
      rows.length ? html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows)) : null,
    ].filter(Boolean));
    const { id } = model.nodes[node];
    if (drawn !== id) reveal();
    drawn = id;
  }

  /* Scrolls to the line of a cost centre, or to the first line of a function that costs. */
  function reveal() {
    const cost = host.querySelector("[aria-current]") ?? host.querySelector("tbody button")?.closest("tr");
    cost?.scrollIntoView({ block: "center" });
  }

  /* Reads the answer for the run that is shown, unless that is on its way. */
  async function read(address) {
    [asked, answer, drawn] = [address, null, null];
    host.replaceChildren(html("p", { class: "notice" }, "Reading the source…"));
    try {
      const received = await api.get(address);
      if (asked !== address) return;
      answer = received;
      draw();
    } catch (error) {
      if (asked !== address) return;
      asked = null;
      host.replaceChildren(html("p", { class: "notice" }, error.message));
    }
  }

  /** @type {View["show"]} */
  function show(model, state, changed) {
    current = { model, state };
    if (changed === null) drawn = null;
    const address = api.address(state.trace, state.run, "source", query());
    if (address !== asked) read(address);
    else if (answer !== null) draw();
  }

  return { show, hide() {} };
}
