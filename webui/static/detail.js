/* The panel of the selected node or edge: its time and loss, its costs, its callers and callees. */

import { byId, html } from "./dom.js";
import {
  amount, balance, count, kind, label, percent, place, scoreText, seconds, shortLabel,
  summary,
} from "./format.js";
import { culprit } from "./opening.js";
import { LOST, METRICS, PARTS, PART_TITLES } from "./terms.js";

/* The node or edge that is selected: { part (with its costs), node, edge }; node and edge are
   positions, edge null where a node is selected. */
export function selection(model, state) {
  const edge = state.edge === null ? null : model.edgeOf(state.edge);
  if (edge !== null) {
    const part = model.edges[edge];
    return { part, node: part.to, edge };
  }
  const node = model.indexOf(state.node) ?? culprit(model, state.metric);
  return { part: model.nodes[node], node, edge: null };
}

function heading(model, { part, node, edge }) {
  const about = model.nodes[node];
  const caller = edge === null ? null
    : html("p", { class: "through" }, `the part called by ${label(model.nodes[part.from])}`);
  return html("header", {},
    html("h2", {}, shortLabel(about)), caller,
    about.kind === "function" || about.file.endsWith(about.under) ? null : html("p", { class: "code" }, about.under),
    html("p", { class: "quiet place" }, place(about) || kind(about)),
    part.count === undefined ? null
      : html("p", {}, html("b", {}, count(part.count, "superstep")), `, ${seconds(part.elapsed_s)} elapsed`));
}

/* What is known of a node or edge of a run. */
function aboutRun(model, chosen, metric) {
  return [times(model, chosen, metric), metrics(chosen, metric)];
}

/* What the metrics are over all processes: maximum, and average and minimum in percent of it. */
function metrics({ part }, metric) {
  const chosen = metric.split("-")[0];
  const rows = Object.entries(METRICS).map(([name, title]) =>
    html("tr", { class: name === chosen ? "chosen" : null },
      html("th", { scope: "row" }, title),
      html("td", {}, amount(part.cost[name].max, name)),
      html("td", { class: "quiet" }, balance(part.cost[name]))));
  return html("table", { class: "costs", title: "maximum (average | minimum) over all processes" },
    html("tbody", {}, ...rows));
}

/* The time of a node or edge by part of the account and root, and what of it is loss. */
function times(model, { node, edge }, metric) {
  const score = (path) => (edge === null ? model.score(node, path) : model.edgeScore(edge, path));
  const share = model.score(model.root, "time") ? score("loss") / model.score(model.root, "time") : 0;
  const row = (title, path, ...more) => html("tr", { class: path === metric ? "chosen" : null },
    html("th", { scope: "row" }, title, ...more), html("td", {}, seconds(score(path))));
  const loss = () => html("span", { class: "quiet" }, " · loss");
  return html("table", { class: "costs booked" }, html("tbody", {},
    ...PARTS.filter((part) => score(part) > 0).map((part) =>
      row(PART_TITLES[part], part, LOST.includes(part) ? loss() : null)),
    row("time", "time"), row(`loss, ${percent(share)} of main`, "loss")));
}

/* aboutNode(model, selection, metric): what is said of it; of a run, if left out. */
/** @param {Context} context */
export function createDetail({ store, aboutNode = aboutRun }) {
  function link(model, edge, node, metric) {
    const part = model.edges[edge];
    const [name] = metric.split("-");
    const text = name in METRICS ? summary(part.cost[name], name) : scoreText(model.edgeScore(edge, metric), metric);
    const { id } = model.nodes[node];
    return html("li", {},
      html("button", { type: "button", class: "name", onclick: () => store.update({ node: id, edge: null }) },
        shortLabel(model.nodes[node])),
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

  /** @type {View["show"]} */
  function show(model, state) {
    const chosen = selection(model, state);
    byId("detail").replaceChildren(
      ...[heading(model, chosen), ...aboutNode(model, chosen, state.metric)].filter(Boolean));
    byId("links").replaceChildren(...[
      list(model, "Called by", model.callers[chosen.node], "from", state.metric),
      list(model, "Calls", model.callees[chosen.node], "to", state.metric),
    ].filter(Boolean));
  }

  return { show };
}
