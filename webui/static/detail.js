/* The panel of the selected node or edge: its costs, its losses, its callers and callees. */

import { byId, html } from "./dom.js";
import {
  METRICS, amount, balance, count, kind, label, percent, place, scoreText, seconds, summary,
} from "./format.js";

/* The node or edge that is selected: { part (with its costs), priced, node, edge }; node and
   edge are positions, edge null where a node is selected. */
export function selection(model, state) {
  const edge = state.edge === null ? null : model.edgeOf(state.edge);
  if (edge !== null) {
    const part = model.edges[edge];
    return { part, priced: model.priced.edges[edge], node: part.to, edge };
  }
  const chain = model.chain(state.metric);
  const [first] = model.priced.verdict.sentences; // about supersteps, where nothing is critical
  const node = model.indexOf(state.node) ?? chain[chain.length - 1] ?? first?.node ?? model.root;
  return { part: model.nodes[node], priced: model.priced.nodes[node], node, edge: null };
}

function heading(model, { part, node, edge }) {
  const { name, elapsed_s: elapsed } = { ...model.nodes[node], elapsed_s: part.elapsed_s };
  const about = model.nodes[node];
  const caller = edge === null ? null
    : html("p", { class: "through" }, `the part called by ${label(model.nodes[part.from])}`);
  return html("header", {},
    html("h2", { title: name }, label(about)), caller,
    html("p", { class: "quiet place" }, place(about) || kind(about)),
    html("p", {}, html("b", {}, count(part.count, "superstep")), ` in ${seconds(elapsed)}`));
}

function costs(model, { part, priced }, metric) {
  const chosen = metric.split("-")[0];
  const rows = Object.entries(METRICS).map(([name, title]) =>
    html("tr", { class: name === chosen ? "chosen" : null },
      html("th", { scope: "row" }, title),
      html("td", {}, amount(part.cost[name].max, name)),
      html("td", { class: "quiet" }, balance(part.cost[name]))));
  const lost = html("tr", { class: chosen === "loss" ? "chosen" : null },
    html("th", { scope: "row" }, "loss"), html("td", {}, seconds(priced.lost)),
    html("td", { class: "quiet" }, `${percent(model.priced.cost ? priced.lost / model.priced.cost : 0)} of the run`));
  return html("table", { class: "costs" }, html("tbody", {}, lost, ...rows));
}

export function createDetail({ store }) {
  function link(model, edge, node, metric) {
    const part = model.edges[edge];
    const text = metric === "loss" || metric === "sync"
      ? scoreText(model.edgeScore(edge, metric), metric)
      : summary(part.cost[metric.split("-")[0]], metric.split("-")[0]);
    const { id } = model.nodes[node];
    return html("li", {},
      html("button", { type: "button", class: "name", onclick: () => store.update({ node: id, edge: null }) },
        label(model.nodes[node])),
      html("button", {
        type: "button", class: "part", title: "Show the part that came this way",
        onclick: () => store.update({ node: model.nodes[part.to].id, edge: model.edgeId(edge) }),
      }, text));
  }

  function list(model, title, edges, end, metric) {
    const sorted = [...edges].sort((a, b) =>
      model.edgeScore(b, metric) - model.edgeScore(a, metric));
    return edges.length === 0 ? null : html("section", { "aria-label": title },
      html("h3", {}, title),
      html("ul", {}, ...sorted.map((edge) => link(model, edge, model.edges[edge][end], metric))));
  }

  function show(model, state) {
    const chosen = selection(model, state);
    byId("detail").replaceChildren(heading(model, chosen), costs(model, chosen, state.metric));
    byId("links").replaceChildren(...[
      list(model, "Called by", model.callers[chosen.node], "from", state.metric),
      list(model, "Calls", model.callees[chosen.node], "to", state.metric),
    ].filter(Boolean));
  }

  return { show };
}
