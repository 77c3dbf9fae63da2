/* The account: the whole elapsed time as one bar, divided by what it was used for. A click on a
   part shades the graph by it, lists its places, and says who has most of it. */

import { button, byId, html } from "./dom.js";
import { isPart, label, partName, percent, seconds } from "./format.js";
import { processName } from "./names.js";

const MOST = 3; // places and processes that are listed

/* The positions of the greatest values, without those of 0. */
function greatest(values, among) {
  return among.filter((position) => values[position] > 0)
    .sort((a, b) => values[b] - values[a]).slice(0, MOST);
}

/* Writes the longest text that fits an element. */
function fit(element, texts) {
  for (const text of [...texts, ""]) {
    element.textContent = text;
    if (element.scrollWidth <= element.clientWidth) return;
  }
}

/** @param {Context} context */
export function createAccount({ store }) {
  const host = byId("account");
  const bar = html("div", { class: "account-bar", role: "group" });
  const about = html("p", { class: "account-places", hidden: true });
  host.replaceChildren(bar, about);
  let pieces = []; // { element, part, share }

  function choose(name) {
    store.update({ metric: store.state.metric === name ? "loss" : name, node: null, edge: null });
  }

  /* Between which times a part was in the repeats of the run; empty where there are none. */
  function interval({ account, run, repeats }, { name }) {
    if (repeats === null || account !== run.account) return "";
    const [least, greatest] = repeats.account_s[name].map(seconds);
    return `; ${least} to ${greatest} in ${repeats.runs.length} runs`;
  }

  function segment(model, part, elapsed, chosen) {
    const share = part.seconds / elapsed;
    const text = `${part.title}: ${seconds(part.seconds)} of ${seconds(elapsed)}, ${percent(share)}${
      interval(model, part)}`;
    const element = button("", () => choose(part.name), { class: "part", "data-part": part.name,
      title: text, "aria-label": text, "aria-pressed": String(part.name === chosen) });
    element.style.flexGrow = String(share);
    return { element, part, share };
  }

  function writeLabels() {
    for (const { element, part, share } of pieces) {
      const amount = percent(share);
      fit(element, [`${part.title} ${amount}`, `${partName(part.name)} ${amount}`, amount]);
    }
  }

  function nodeButton(model, node, text) {
    return button(text, () => store.update({ node: model.nodes[node].id, edge: null }));
  }

  /* Where a part arises, and which processes have most of it. */
  function whereAndWho(model, part) {
    const values = model.times.nodes[part.name];
    const leaves = model.nodes.map((_, node) => node).filter((node) => model.callees[node].length === 0);
    const places = greatest(values, leaves).flatMap((node, position) => {
      const place = nodeButton(model, node, `${label(model.nodes[node])} ${seconds(values[node])}`);
      return position > 0 ? [", ", place] : [place];
    });
    const { hosts } = model.run.run;
    const who = greatest(part.processes, part.processes.map((_, pid) => pid))
      .map((pid) => `${processName(hosts, pid)} ${seconds(part.processes[pid])}`);
    return [html("b", {}, `${part.title}: ${seconds(part.seconds)} on average${interval(model, part)}`),
      ...(places.length ? [html("span", {}, "at ", ...places)] : []),
      who.length ? html("span", { class: "who" }, `most of it in ${who.join(", ")}`) : null].filter(Boolean);
  }

  /** @type {View["show"]} */
  function show(model, { metric }) {
    const { parts, elapsed_s: elapsed } = model.account;
    host.hidden = elapsed === 0;
    pieces = parts.filter(({ seconds: mine }) => mine > 0).map((part) => segment(model, part, elapsed, metric));
    bar.setAttribute("aria-label", `What ${seconds(elapsed)} were used for`);
    bar.replaceChildren(...pieces.map(({ element }) => element));
    const chosen = parts.find(({ name }) => name === metric && isPart(metric));
    about.hidden = chosen === undefined;
    if (chosen !== undefined) about.replaceChildren(...whereAndWho(model, chosen));
    writeLabels();
  }

  new ResizeObserver(writeLabels).observe(bar);
  return { show };
}
