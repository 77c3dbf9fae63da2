/* The strip of the verdict: its sentences, each with its interval where the run was repeated, and
   a last one on the rest of the time. A click selects the node and, where
   one superstep bears most of the loss, shows it in the timeline. */

import { button, byId, html } from "./dom.js";
import { seconds } from "./format.js";

const AROUND = 12; // supersteps shown on either side of one
const TALL = 900; // pixels: in a lower window, only the first sentence is shown at first

/* isLong: whether all sentences are shown at first in every window. */
/** @param {Context} context */
export function createVerdict({ store, isLong = false }) {
  const host = byId("verdict");
  let isShort = !isLong && window.innerHeight < TALL;
  let shown = null;

  function choose({ node, superstep, group = 0 }, model) {
    /** @type {Changes} */
    const view = superstep === null || group > 0 ? {} : {  // the axis counts those of all processes
      view: "timeline", axis: "superstep",
      span: [Math.max(0, superstep - AROUND), superstep + AROUND + 1],
    };
    store.update({ ...view, node: model.nodes[node].id, edge: null });
  }

  function item(sentence, model) {
    const { interval = null } = sentence;
    const text = sentence.node === null ? html("span", {}, sentence.text)
      : button(sentence.text, () => choose(sentence, model),
        { title: `${seconds(sentence.seconds)}: show where` });
    if (interval !== null) text.append(html("span", { class: "interval" }, ` (${interval.text})`));
    return html("li", { class: interval === null || interval.is_sure ? null : "unsure" }, text);
  }

  /* The sentences with their intervals over the repeats of the run, as far as these are known;
     what holds in most of them comes first. At other rates there are none. */
  function told({ verdict, run, repeats = null }) {
    if (repeats === null || verdict !== run.verdict) return verdict.sentences;
    return repeats.intervals.map((interval) => ({ ...verdict.sentences[interval.sentence], interval }));
  }

  /* The button that shows or hides all sentences but the first. */
  function moreButton(count) {
    return button(isShort ? `${count} more` : "fewer", () => {
      isShort = !isShort;
      draw(shown);
    }, { class: "more", "aria-expanded": String(!isShort) });
  }

  function draw(model) {
    const { balanced, rest = null, threads = "", steal = "" } = model.verdict;
    const sentences = told(model);
    host.classList.toggle("balanced", balanced);
    host.classList.toggle("short", isShort);
    const others = [rest, threads, steal].filter(Boolean).map((text) => html("p", { class: "rest" }, text));
    const list = html("ol", {}, ...sentences.map((sentence) => item(sentence, model)));
    host.replaceChildren(
      html("div", { class: "sentences" }, list, ...others),
      ...(sentences.length + others.length > 1 ? [moreButton(sentences.length + others.length - 1)] : []));
    host.hidden = sentences.length === 0;
  }

  /** @type {View["show"]} */
  function show(model) {
    shown = model;
    draw(model);
  }

  return { show };
}
