/* The account: the whole elapsed time as one bar, divided by what it was used for. A click on a
   part shades the graph by it, lists its places, and says who caused it and who has most of it.
   A part that is too narrow for its name is named below the bar. */

import { button, byId, html } from "./dom.js";
import { isPart, label, partName, percent, seconds } from "./format.js";
import { processName } from "./names.js";

const MOST = 3; // places, causes and processes that are listed
const LEAST = 0.005; // of the elapsed time: a smaller part is named nowhere but in its tooltip

/* The positions of the greatest values, without those of 0. */
function greatest(values, among) {
  return among.filter((position) => values[position] > 0)
    .sort((a, b) => values[b] - values[a]).slice(0, MOST);
}

/* The longest text that fits an element; whether that is one with the name of the part. */
function fit(element, texts) {
  for (const text of texts) {
    element.textContent = text;
    if (element.scrollWidth <= element.clientWidth) return text.includes(" ");
  }
  element.textContent = "";
  return false;
}

/** @param {Context} context */
export function createAccount({ store }) {
  const host = byId("account");
  const bar = html("div", { class: "account-bar", role: "group" });
  const key = html("p", { class: "account-key" });
  const about = html("p", { class: "account-places", hidden: true });
  host.replaceChildren(bar, key, about);
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

  /* Writes into each part what fits, and below the bar the names of the others. */
  function writeLabels() {
    const unnamed = pieces.filter(({ element, part, share }) => {
      const amount = percent(share);
      const texts = share < LEAST ? [] : [`${part.title} ${amount}`, `${partName(part.name)} ${amount}`, amount];
      return !fit(element, texts) && share >= LEAST;
    });
    key.hidden = unnamed.length === 0;
    key.replaceChildren(...unnamed.map(({ part, share }) =>
      html("button", { type: "button", "data-part": part.name, tabindex: -1, onclick: () => choose(part.name) },
        html("span", { class: "part-swatch" }), `${part.title} ${percent(share)}`)));
  }

  function nodeButton(model, node, text) {
    return button(text, () => store.update({ node: model.nodes[node].id, edge: null }));
  }

  /* Who others wait for at a place, or is blocked there. */
  function cause(model, { node, who, seconds: mine }) {
    const { hosts } = model.run.run;
    const names = who.length === 0 ? "another process each time"
      : who.length > MOST ? `${who.length} processes` : who.map((pid) => processName(hosts, pid)).join(", ");
    return html("span", {}, `${names} in `, nodeButton(model, node, `${label(model.nodes[node])} ${seconds(mine)}`));
  }

  /* Where a part arises, who causes it, and which processes have most of it. */
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
    const causes = part.causes.slice(0, MOST).flatMap((each, position) =>
      (position > 0 ? ["; ", cause(model, each)] : [cause(model, each)]));
    return [html("b", {}, `${part.title}: ${seconds(part.seconds)} on average${interval(model, part)}`),
      ...(places.length ? [html("span", {}, "at ", ...places)] : []),
      ...(causes.length ? [html("span", { class: "causes" }, "caused by ", ...causes)] : []),
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
