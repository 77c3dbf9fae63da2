/* The choice of the Machine on which the run is shown: a button in the header that opens a list
   of Machines and a field for each figure. The server times the run anew; a page that was saved
   has the Machines that were named, and no other figures. */

import { button, html } from "./dom.js";
import { FIGURES, figureRow, written } from "./figures.js";
import { percent, seconds } from "./format.js";
import { shortcut } from "./keys.js";
import { chosenFigures, chosenMachine } from "./rates.js";

const OWN = { machine: null, g: null, l: null, speed: null };
const RULES = { max: "h is the greater of bytes in and out", sum: "h is bytes in and out together" };

/* The name of a Machine; of the run's own rates where they come from. */
function nameOf({ title, source }) {
  return title ?? (source === "none" ? "not known" : source);
}

/* What is missing of a Machine, as far as the reader has not set it. */
function gaps(chosen, { l, speed }) {
  const lacking = (chosen.l === null && l === null) || (chosen.ratio === null && speed === null);
  return chosen.title && !lacking ? "" : chosen.note;
}

function totals({ time, loss }, root) {
  const share = time[root] ? loss[root] / time[root] : 0;
  return `takes ${seconds(time[root])}, of which ${seconds(loss[root])} (${percent(share)}) are lost`;
}

/* The time in main in the run, and on the chosen Machine once it is known. */
function outcome({ run, times, root }) {
  const here = totals(times.nodes, root);
  if (times === run.times) return [html("p", {}, `main ${here}.`)];
  return [
    html("p", {}, html("b", {}, `main ${here} with these figures.`)),
    html("p", { class: "quiet" }, `In the run it ${totals(run.times.nodes, root)}.`),
  ];
}

/* context.outcome(model): paragraphs on what the run costs; of a profile, if left out. */
/** @param {HTMLElement} host @param {Context} context */
export function create(host, context) {
  const { state, update } = context.store;
  const outcomeOf = context.outcome ?? outcome;
  const opener = html("button", { type: "button", class: "opener", "aria-keyshortcuts": "m" });
  const select = html("select", {
    "aria-label": "Machine", disabled: Boolean(context.isSaved), onchange: () => update({ ...OWN, machine: select.value || null }),
  });
  const about = html("p", { class: "quiet" });
  const note = html("p", { class: "gap" });
  const result = html("div", { class: "outcome" });
  const isSaved = context.isSaved ?? context.api.offline;
  const saved = html("p", { class: "quiet saved", hidden: !isSaved || Boolean(context.isSaved) },
    "This page was saved to a file with the Machines above: bsp view takes other figures, too.");
  const reset = button("Reset to the run’s own", () => update(OWN), { class: "plain-button" });
  const rows = FIGURES.map((figure) =>
    figureRow(figure, (value) => update({ [figure.name]: value }), isSaved));
  const figures = html("div", { class: "figures" }, ...rows.flatMap(({ cells }) => cells));
  const panel = html("div", { class: "machine-panel", role: "dialog", "aria-label": "Machine", popover: "auto" },
    select, about, figures, saved, note, result, reset);
  opener.popoverTargetElement = panel;
  host.replaceChildren(opener, panel);
  let offered = null;
  shortcut("m", "Choose the Machine, or its g, l and speed", () => {
    opener.focus(); // to which the focus returns
    panel.showPopover();
    select.focus();
  });

  function offer(run) {
    if (offered === run) return;
    offered = run;
    select.replaceChildren(
      html("option", { value: "" }, `As in the run: ${nameOf(run.rates)}`),
      ...run.machines.map(({ name, title }) => html("option", { value: name }, title)));
  }

  function showOpener(chosen, rates, isSet, isOwn) {
    opener.replaceChildren(
      html("span", { class: "quiet" }, "Machine "), html("b", {}, nameOf(chosen)),
      isSet ? ", changed ▾" : " ▾");
    opener.title = `g ${seconds(rates.g)} per byte, l ${seconds(rates.l)} per superstep, speed `
      + `${written(FIGURES[2], 1 / rates.ratio)} (m)`;
    opener.classList.toggle("other", !isOwn);
  }

  /** @type {View["show"]} */
  function show(model) {
    const { run, rates } = model;
    offer(run);
    const chosen = chosenMachine(run, state.machine);
    const figuresSet = chosenFigures(run, state, isSaved);
    const isSet = FIGURES.some(({ name }) => figuresSet[name] !== null);
    const isOwn = chosen === run.rates && !isSet;
    showOpener(chosen, rates, isSet, isOwn);
    select.value = chosen === run.rates ? "" : chosen.name;
    about.textContent = [chosen.title ? chosen.source : null, RULES[chosen.rule]]
      .filter(Boolean).join(" · ");
    note.textContent = gaps(chosen, figuresSet);
    note.hidden = note.textContent === "";
    rows.forEach((row, number) => row.show(rates, figuresSet[FIGURES[number].name] !== null));
    result.replaceChildren(...outcomeOf(model));
    reset.disabled = isOwn;
  }

  return { show };
}
