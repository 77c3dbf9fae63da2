/* The critical path as a list of nodes, each with the score of what came through the path. */

import { byId, html } from "./dom.js";
import { label, scoreText, shortLabel } from "./format.js";

/** @param {Context} context */
export function createChain({ store }) {
  const host = byId("chain");

  /** @type {View["show"]} */
  function show(model, { metric, node: selected }) {
    const scores = model.chainScores(metric);
    const steps = model.chain(metric).map((node, depth) => {
      const { id, under, kind } = model.nodes[node];
      return html("li", {}, html("button", {
        type: "button", "aria-current": id === selected ? "true" : null,
        onclick: () => store.update({ node: id, edge: null }),
        title: label(model.nodes[node]),
      }, html("span", { class: "name" }, shortLabel(model.nodes[node]),
        kind === "function" ? null : html("span", { class: "under" }, under ?? "")),
      html("span", { class: "score" }, scoreText(scores[depth], metric))));
    });
    host.replaceChildren(html("h3", {}, "Critical path"), steps.length ? html("ol", {}, ...steps)
      : html("p", { class: "quiet" }, "Nothing is critical: 0 everywhere."));
  }

  return { show };
}
