/* The account: the whole elapsed time as one bar, divided by what it was used for. A click on a
   part shades the graph by it, and lists its places and who has most of it. */

import { button, byId, html } from "./dom.js";
import { PARTS, label, percent, seconds } from "./format.js";
import { processName } from "./names.js";

const MOST = 3; // places, and processes, that are listed
const LEAST = 0.005; // of the elapsed time: a smaller part has no text

/* The positions of the greatest values, without those of 0. */
function greatest(values, among) {
  return among.filter((position) => values[position] > 0)
    .sort((a, b) => values[b] - values[a]).slice(0, MOST);
}

export function createAccount({ store }) {
  const host = byId("account");

  function choose(name) {
    store.update({ metric: store.state.metric === name ? "loss" : name, node: null, edge: null });
  }

  function segment({ name, title, seconds: mine }, elapsed, chosen) {
    const share = mine / elapsed;
    const text = `${title}: ${seconds(mine)} of ${seconds(elapsed)}, ${percent(share)}`;
    const piece = button(share >= LEAST ? `${title} ${percent(share)}` : "", () => choose(name),
      { class: "part", "data-part": name, title: text, "aria-label": text,
        "aria-pressed": String(name === chosen) });
    piece.style.flexGrow = String(share);
    return piece;
  }

  /* Where a part arises, and which processes have most of it. */
  function whereAndWho(model, part) {
    const { nodes: values } = model.inSeconds(part.name);
    const leaves = model.nodes.map((_, node) => node).filter((node) => model.callees[node].length === 0);
    const places = greatest(values, leaves).map((node) => button(
      `${label(model.nodes[node])} ${seconds(values[node])}`,
      () => store.update({ node: model.nodes[node].id, edge: null })));
    const { hosts } = model.run.run;
    const who = greatest(part.processes, part.processes.map((_, pid) => pid))
      .map((pid) => `${processName(hosts, pid)} ${seconds(part.processes[pid])}`);
    return [html("b", {}, `${part.title}: ${seconds(part.seconds)} on average`),
      ...(places.length ? [" at ", ...places] : []),
      who.length ? html("span", {}, `most of it in ${who.join(", ")}`) : null].filter(Boolean);
  }

  function show(model, { metric }) {
    const { parts, elapsed_s: elapsed } = model.account;
    host.hidden = elapsed === 0;
    const chosen = parts.find(({ name }) => name === metric && PARTS.includes(name));
    const bar = html("div", { class: "account-bar", role: "group", "aria-label": `What ${seconds(elapsed)} were used for` },
      ...parts.filter(({ seconds: mine }) => mine > 0).map((part) => segment(part, elapsed, metric)));
    host.replaceChildren(bar,
      ...(chosen ? [html("p", { class: "account-places" }, ...whereAndWho(model, chosen))] : []));
  }

  return { show };
}
