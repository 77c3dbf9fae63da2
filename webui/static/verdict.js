/* The strip of the verdict: the sentences of the ledger. A click selects the node. */

import { byId, html } from "./dom.js";
import { seconds } from "./format.js";

export function createVerdict({ store }) {
  const host = byId("verdict");

  function choose({ node, superstep }, model) {
    if (superstep !== null && superstep !== undefined) {
      store.update({ view: "timeline", brush: [superstep, superstep] });
    }
    if (node !== null) store.update({ node: model.nodes[node].id, edge: null });
  }

  function show(model) {
    const { balanced, sentences } = model.priced.verdict;
    host.classList.toggle("balanced", balanced);
    host.replaceChildren(html("ol", {}, ...sentences.map((sentence) =>
      html("li", {}, sentence.node === null ? html("span", {}, sentence.text)
        : html("button", { type: "button", title: `${seconds(sentence.seconds)}: show it`,
          onclick: () => choose(sentence, model) }, sentence.text)))));
    host.hidden = sentences.length === 0;
  }

  return { show };
}
