/* What the shades can show: the loss, the time and the parts of the account, and in a fold the
   seventeen of Jarvis et al. Each has its greatest score beside it, so that the list is a summary, too. */

import { byId, html } from "./dom.js";
import { count, isInSeconds, pathTitle, roughScore, scoreText } from "./format.js";
import { MEASURES, MEASURE_NAMES, METRICS, PARTS, PATHS } from "./terms.js";

const ADDED_UP = ["loss", "time", ...PARTS]; // in seconds, over the run
const OF_THE_PAPER = PATHS.filter((path) => path !== "loss");

function fullText(value, path) {
  return path === "sync" ? count(value, "superstep") : scoreText(value, path);
}

/** @param {Context} context */
export function createPaths({ store }) {
  const cells = new Map();

  function radio(path, ...title) {
    const score = html("span", { class: "score" });
    const input = html("input", {
      type: "radio", name: "metric", value: path, "aria-label": pathTitle(path),
      onchange: () => store.update({ metric: path }),
    });
    const label = html("label", { "data-part": PARTS.includes(path) ? path : null }, input,
      html("span", {}, ...title, score));
    cells.set(path, { score, input, label });
    return label;
  }

  const swatch = () => html("span", { class: "part-swatch" });
  const row = (path) => radio(path, ...(PARTS.includes(path) ? [swatch()] : []),
    html("span", { class: "name" }, pathTitle(path)));
  const heads = html("tr", {}, ...Object.keys(MEASURES).map((measure) =>
    html("th", { scope: "col", title: MEASURES[measure] }, MEASURE_NAMES[measure])));
  const rows = Object.entries(METRICS).flatMap(([metric, title]) => [
    html("tr", {}, html("th", { scope: "rowgroup", colspan: 4 }, title)),
    html("tr", {}, ...Object.keys(MEASURES).map((measure) => html("td", {}, radio(`${metric}-${measure}`))))]);
  const fold = html("details", {},
    html("summary", { title: "The critical paths of Jarvis et al. (2002)" }, "17 costs of supersteps"),
    row("sync"), html("table", {}, html("thead", {}, heads), html("tbody", {}, ...rows)));
  byId("paths").replaceChildren(html("div", { class: "added-up" }, ...ADDED_UP.map(row)), fold);

  function greatest(model, path) {
    return model.nodes.reduce((most, _, node) => Math.max(most, model.score(node, path)), 0);
  }

  /** @type {View["show"]} */
  function show(model, state, changed) {
    for (const [path, { input }] of cells) input.checked = path === state.metric;
    if (OF_THE_PAPER.includes(state.metric)) fold.open = true;
    if (changed.has("model")) showScores(model);
    for (const path of PARTS) {
      const { label } = cells.get(path);
      label.hidden = path !== state.metric && !(amountOf(model, path) > 0);
    }
  }

  const amountOf = (model, path) => (PARTS.includes(path)
    ? model.account.parts.find(({ name }) => name === path).seconds : greatest(model, path));

  function showScores(model) {
    for (const [path, { score, label }] of cells) {
      const most = amountOf(model, path);
      score.textContent = isInSeconds(path) || path === "sync" ? fullText(most, path) : roughScore(most, path);
      label.title = `${pathTitle(path)}: ${PARTS.includes(path) ? "" : "at most "}${fullText(most, path)}`;
    }
  }

  return { show };
}
