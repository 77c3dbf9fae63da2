/* The panel of the selected node of a predicted graph: its times here and at the reference, the
   laws of a cost centre, its callers and callees; and the texts of the tooltips. */

import { selection } from "./detail.js";
import { byId, html } from "./dom.js";
import { kind, label, percent, place, seconds, shortLabel } from "./format.js";
import { MEASURES } from "./predicted-model.js";

const TITLES = { supersteps: "supersteps", h: "h in bytes", comp: "computation in s" };
const PARTS = { comp: "w: computation", comm: "g h: transfers", sync: "l: supersteps", total: "in all" };

function heading(model, { node, edge, part }) {
  const about = model.nodes[node];
  return html("header", {}, html("h2", {}, shortLabel(about)),
    edge === null ? null
      : html("p", { class: "through" }, `the part called by ${label(model.nodes[part.from])}`),
    html("p", { class: "quiet place" }, place(about) || kind(about)));
}

function times(model, chosen) {
  const here = model.seconds(chosen, model.prediction);
  const there = model.seconds(chosen, model.reference);
  const heads = ["", "here", "at the reference"].map((text) => html("th", { scope: "col" }, text));
  const rows = Object.entries(PARTS).map(([part, title]) =>
    html("tr", { class: part === "total" ? "chosen" : null }, html("th", { scope: "row" }, title),
      html("td", {}, seconds(here[part])), html("td", {}, seconds(there[part]))));
  const share = (all, { total }) => percent(total > 0 ? all.total / total : 0);
  rows.push(html("tr", {}, html("th", { scope: "row" }, "of the run"),
    html("td", {}, share(here, model.prediction)), html("td", {}, share(there, model.reference))));
  return html("table", { class: "costs booked" }, html("thead", {}, html("tr", {}, ...heads)),
    html("tbody", {}, ...rows));
}

/* The laws of the chains that end at a cost centre, each with its callers. */
function laws(model, node) {
  const chains = model.data.chains.filter(({ nodes }) => nodes.at(-1) === node);
  return chains.flatMap(({ nodes, laws: found }) => {
    const callers = nodes.slice(1, -1).map((each) => label(model.nodes[each])).join(" > ");
    return [
      html("h3", {}, chains.length > 1 && callers ? `Laws in ${callers}` : "Laws"),
      html("dl", {}, ...Object.entries(TITLES).flatMap(([quantity, title]) => {
        const { text, why, noise } = found[quantity];
        const words = why ? `refused: ${why}` : `${text}${noise === null ? "" : ` (± ${percent(noise)})`}`;
        const sort = why ? "refused" : noise === null ? "exact" : "fitted";
        return [html("dt", {}, title), html("dd", { class: sort }, words)];
      })),
    ];
  });
}

/** @param {Context} context */
export function createPredictedDetail({ store }) {
  function list(model, title, edges, end, metric) {
    const sorted = [...edges].sort((a, b) => model.edgeScore(b, metric) - model.edgeScore(a, metric));
    return edges.length === 0 ? null : html("section", { "aria-label": title }, html("h3", {}, title),
      html("ul", {}, ...sorted.map((edge) => {
        const other = model.nodes[model.edges[edge][end]];
        return html("li", {}, html("button", {
          type: "button", class: "name", onclick: () => store.update({ node: other.id, edge: null }),
        }, label(other)), html("button", {
          type: "button", class: "part", title: "Show the part that came this way",
          onclick: () => store.update({
            node: model.nodes[model.edges[edge].to].id, edge: model.edgeId(edge),
          }),
        }, seconds(model.edgeScore(edge, metric))));
      })));
  }

  /** @type {View["show"]} */
  function show(model, state) {
    const chosen = selection(model, state);
    byId("detail").replaceChildren(heading(model, chosen), times(model, chosen));
    byId("laws").replaceChildren(...laws(model, chosen.node));
    byId("links").replaceChildren(...[
      list(model, "Called by", model.callers[chosen.node], "from", state.metric),
      list(model, "Calls", model.callees[chosen.node], "to", state.metric),
    ].filter(Boolean));
  }

  return { show };
}

function lines(model, chosen, score, measure) {
  const here = model.seconds(chosen, model.prediction);
  const there = model.seconds(chosen, model.reference);
  return [
    `${MEASURES[measure].title}: ${seconds(score)}`,
    `here ${seconds(here.total)}: w ${seconds(here.comp)}, g h ${seconds(here.comm)}, l ${
      seconds(here.sync)}`,
    `at the reference ${seconds(there.total)}`,
  ];
}

export const texts = {
  nodeText: (model, node, measure) => [
    label(model.nodes[node]), place(model.nodes[node]),
    ...lines(model, { node, edge: null }, model.score(node, measure), measure),
  ].filter(Boolean),
  lineText: (model, { from, to, edge }, measure) => {
    const title = `${label(model.nodes[from])} → ${label(model.nodes[to])}`;
    if (edge === null) return [title, "Calls through nodes that are not shown."];
    return [title, ...lines(model, { node: to, edge }, model.edgeScore(edge, measure), measure)];
  },
};
