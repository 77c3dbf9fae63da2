/* The header: which trace and run is shown, where and how it ran, and the page's own buttons. */

import { byId, html } from "./dom.js";
import { count, integer, processes, seconds } from "./format.js";
import { pageButtons } from "./page-buttons.js";
import { comparedOf, othersOf, runText } from "./runs.js";

/* A trace by file, program, processes and date; why it cannot be read, where that is so. */
function traceText({ name, title, runs, error }) {
  if (error !== null) return error;
  const [run] = runs;
  const parts = run ? [title, processes(run.nprocs), run.started && started(run.started)] : ["no runs"];
  return `${name}: ${parts.filter(Boolean).join(", ")}`;
}

function picker(label, options, onchange) {
  return html("select", { "aria-label": label, title: label, onchange },
    ...options.map(([value, text, disabled]) => html("option", { value, disabled }, text)));
}

/* The pickers of trace, run and the run to compare with, and the facts of the run that is shown. */
/** @param {Context} context */
export function createHeader(context) {
  const { state, update } = context.store;
  const pickers = html("span", { class: "pickers" });
  const facts = html("p", { class: "facts" });
  const title = html("h1", {});
  const error = html("p", { class: "error", role: "alert", hidden: true });
  byId("facts").replaceChildren(html("div", { class: "program" }, title, pickers), facts, error);
  byId("actions").replaceChildren(...pageButtons());

  /* Offers the traces, the runs of the one that is chosen, and those to compare with. */
  function offer(traces) {
    const trace = traces.find(({ id }) => id === state.trace) ?? traces[0];
    const chosen = [];
    if (traces.length > 1) {
      const select = picker("Trace", traces.map((each) =>
        [each.id, traceText(each), each.error !== null]), () =>
        update({ trace: select.value, run: openingOf(select.value), ...context.anew() }));
      select.value = trace.id;
      chosen.push(select);
    }
    if (trace && trace.runs.length > 1) {
      const select = picker("Run", trace.runs.map((run, number) =>
        [number, `${runText(run)}${isMedian(trace, number) ? ", median time" : ""}`]), () =>
        update({ run: Number(select.value), ...context.anew() }));
      select.value = String(state.run);
      chosen.push(select);
    }
    const others = othersOf(traces, state);
    if (others.length > 0) {
      const compared = comparedOf(others, state);
      const select = picker("Compare with", [...(compared === null ? [["", "compare with ..."]] : []),
        ...others.map(({ key, text }) => [key, `compared with ${text}`])], () =>
        update({ compared: select.value || null, view: select.value ? "compare" : state.view }));
      select.value = compared ?? "";
      chosen.push(select);
    }
    pickers.replaceChildren(...chosen);
  }

  function openingOf(id) {
    return context.loaded.traces.find((trace) => trace.id === id).opening;
  }

  function show({ run: { run, nodes, root }, repeats }) {
    title.textContent = [run.program ?? "program unknown", ...run.arguments].join(" ");
    title.title = title.textContent;
    document.title = `${run.program ?? "no program"} - bsp profile`;
    const parts = [
      processes(run.nprocs),
      run.cores === null ? null : count(run.cores, "core"),
      run.backend, run.hosts === null ? run.host : count(run.hosts.names.length, "host"),
      run.started === null ? null : started(run.started),
      superstepsText(run, nodes[root].count), seconds(run.elapsed_s),
      repeats === null ? null : repeatsText(repeats, state.run),
    ];
    facts.replaceChildren(...parts.filter(Boolean).map((part) => html("span", {}, part)));
    error.hidden = run.complete;
    error.textContent = run.complete ? "" : run.error ?? "The run ended in an error.";
  }

  return { offer, show };
}

/* The supersteps as main counts them, and the report: with those of sub-groups. Of sub-groups side
   by side, those with the most supersteps count. */
function superstepsText({ supersteps: own, backend }, all) {
  const text = count(all, "superstep");
  const where = backend === "mpi4py" ? "among some of the processes" : "in sub-groups";
  return all === own ? text : `${text}, ${integer(all - own)} of them ${where}`;
}

function isMedian({ opening, runs }, number) {
  return number === opening && (runs[number].repeat?.[1] ?? 1) > 1;
}

/* Which of several runs is shown, and how long they took. */
function repeatsText({ median, runs, least_s: least, greatest_s: greatest }, shown) {
  const which = median === shown ? "the run of median time" : "not the run of median time";
  return `${which} of ${integer(runs.length)}: ${seconds(least)} to ${seconds(greatest)}`;
}

/* Date and time of the start; the text itself where it is no date. */
function started(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text
    : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
