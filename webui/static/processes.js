/* The panel of processes: how the selected node or edge is shared out among them. */

import { html } from "./dom.js";
import { selection } from "./detail.js";
import { amount, integer, percent } from "./format.js";
import { processName } from "./names.js";
import { bars, pie } from "./shares.js";
import { METRICS } from "./terms.js";

const MOST_SLICES = 16; // of a pie
const EVEN = 0.05; // an imbalance below this part of the maximum is none
const NEARLY = 0.99; // of the greatest sum counts as much

/* The pids of those with the greatest value: one, unless others have nearly as much. */
function leaders(values) {
  const enough = NEARLY * values.reduce((a, b) => Math.max(a, b), 0);
  return values.flatMap((value, pid) => (value >= enough ? [pid] : []));
}

/* The metric that is shown at first: that of the chosen path; of times that of the greater loss. */
function usualMetric(path, model, node) {
  const [metric] = path.split("-");
  if (metric in METRICS) return metric;
  return model.score(node, "transfer_imbalance") > model.score(node, "imbalance") ? "h" : "comp";
}

/** @param {HTMLElement} host @param {Context} context */
export function create(host, { store, api, query }) {
  const heading = html("h3", {}, "Processes");
  const choice = html("div", { class: "metrics", role: "group", "aria-label": "Metric" });
  const body = html("div", { class: "shares" });
  host.replaceChildren(html("header", {}, heading, choice), body);
  let chosen = { path: null, metric: null }; // a metric chosen here, while the path stays
  let shown = null;

  function choose(metric) {
    chosen = { path: store.state.metric, metric };
    draw();
  }

  function draw() {
    const { selected } = shown;
    if (chosen.path !== store.state.metric) chosen = { path: null, metric: null };
    const metric = chosen.metric ?? usualMetric(store.state.metric, shown.model, selected.node);
    choice.replaceChildren(...Object.entries(METRICS).map(([name, title]) =>
      html("button", {
        type: "button", title, "aria-pressed": String(name === metric), onclick: () => choose(name),
      }, name)));
    const { pie: values } = selected.part.cost[metric];
    if (values) body.replaceChildren(...content(selected.part, metric, values, shown.model.run.run.hosts));
    else ask(shown, metric);
  }

  /* Where there are too many processes, the shares of one node are asked for by themselves. */
  async function ask({ model, state, selected }, metric) {
    const asked = shown;
    body.replaceChildren(html("p", { class: "quiet" }, "Adding up the processes…"));
    const which = selected.edge === null ? { node: model.nodes[selected.node].id }
      : { edge: model.edgeId(selected.edge) };
    try {
      const path = api.address(state.trace, state.run, "processes", { ...query(), ...which });
      const pies = await api.get(path);
      if (asked === shown) body.replaceChildren(...content(selected.part, metric, pies[metric], model.run.run.hosts));
    } catch (error) {
      if (asked === shown) body.replaceChildren(html("p", { class: "quiet" }, error.message));
    }
  }

  /** @type {View["show"]} */
  function show(model, state) {
    shown = { model, state: { trace: state.trace, run: state.run }, selected: selection(model, state) };
    draw();
  }

  return { show };
}

/* The chart of some values by pid, and what is known of one of the processes. */
function content(part, metric, values, hosts) {
  const cost = part.cost[metric];
  const total = values.reduce((sum, value) => sum + value, 0);
  const readout = html("p", { class: "readout" });
  let [pointed] = leaders(values);
  const greatest = cost.max - cost.avg > EVEN * cost.max ? leaders(values) : [];
  const few = values.length <= MOST_SLICES;
  const chart = few ? pie(values, greatest, point) : bars(values, greatest, cost.avg, point);
  const box = html("div", {
    class: few ? "charts few" : "charts", role: "slider", tabindex: 0, "aria-label": "Process",
    "aria-valuemin": 0, "aria-valuemax": values.length - 1, onkeydown: onKey,
  }, chart.element, ...(few ? [] : [scale(values.length)]));

  function tell(pid) {
    pointed = pid;
    const text = `${processName(hosts, pid)}: ${amount(values[pid], metric)}, `
      + `${percent(total ? values[pid] / total : 0)} of all`;
    readout.textContent = text;
    box.setAttribute("aria-valuenow", pid);
    box.setAttribute("aria-valuetext", text);
  }

  function point(pid) {
    tell(pid);
    chart.mark(pid);
  }

  function onKey(event) {
    const next = moved(event.key, pointed, values.length);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    point(next);
  }

  tell(pointed);
  return [box, readout];
}

function scale(count) {
  return html("div", { class: "scale" }, html("span", {}, "process 0"),
    html("span", {}, integer(count - 1)));
}

/* The process to which a key leads. */
function moved(key, pid, count) {
  const last = count - 1;
  const page = Math.max(1, Math.round(count / 10));
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -page, PageUp: page, Home: -last, End: last };
  return key in steps ? Math.min(last, Math.max(0, pid + steps[key])) : null;
}
