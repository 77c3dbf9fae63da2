/* The view "Source": the function around the selected node, with what each line costs that
   ended supersteps or called a function that did. Where the run was sampled, each line has its
   seconds. */

import { selection } from "./detail.js";
import { html } from "./dom.js";
import { isInSeconds, label, pathTitle, scoreText, seconds } from "./format.js";
import { costsOf } from "./lines.js";
import { bin } from "./model.js";
import { SAMPLED } from "./terms.js";

const ABOUT_SAMPLES = "From samples, with what is called here; average of the processes";

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

  /* The shade of a line: that of its score, but at a call never more than that of what is called,
     which is paler in the graph, too. */
  function shadeOf(model, path, { nodes, ends }, score) {
    const most = ends ? 1 : Math.max(...nodes.map((node) => model.shade(node, path)));
    return Math.min(most, model.shadeOf(score, path));
  }

  /* The cell in the margin of a line. */
  function margin(model, path, found) {
    if (!found) return html("td");
    const { nodes: [node], scores } = found;
    if (scores.length === 0) {
      return html("td", { class: "margin" }, select(model, node, `→ ${label(model.nodes[node])}`));
    }
    const addsUp = isInSeconds(path) || path === "sync";
    const score = addsUp ? scores.reduce((sum, each) => sum + each, 0) : Math.max(...scores);
    return html("td", { class: "margin", "data-bin": bin(shadeOf(model, path, found, score)) },
      select(model, node, scoreText(score, path)));
  }

  function rowsOf(model, { metric }, node, number, sampled) {
    const { first, lines } = answer.excerpts[number];
    const { kind, line: chosen } = model.nodes[node];
    const costs = costsOf(model, answer, number, metric);
    const found = new Map(answer.excerpts[number].seconds);
    return lines.map((pieces, offset) => {
      const line = first + offset;
      const cost = costs.get(line);
      const isChosen = kind === "cost_centre" && line === chosen;
      return html("tr", {
        class: cost?.ends ? "ends" : null, "data-line": line, "aria-current": isChosen ? "true" : null,
      }, margin(model, metric, cost), ...sampled.map(([part]) =>
        html("td", { class: "margin" }, found.get(line)?.[part] > 0 ? seconds(found.get(line)[part]) : "")),
      html("th", { scope: "row" }, String(line)), code(pieces));
    });
  }

  function draw() {
    const { model, state } = current;
    const { node } = selection(model, state);
    const number = answer.of[node];
    const { file, note, seconds: lines } = answer.excerpts[number];
    const sampled = Object.entries(SAMPLED).filter(([part]) => lines.some(([, line]) => line[part] > 0));
    const rows = rowsOf(model, state, node, number, sampled);
    const columns = [[pathTitle(state.metric), "What the shades show"],
      ...sampled.map(([, text]) => [text, ABOUT_SAMPLES])];
    const head = html("tr", {}, ...columns.map(([text, title]) =>
      html("th", { scope: "col", title }, text)), html("td", { colspan: 2 }));
    host.replaceChildren(...[
      html("div", { class: "about" }, html("h2", {}, file || label(model.nodes[node])),
        note ? html("p", { class: "gap" }, note) : null),
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
