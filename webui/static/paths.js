/* The function bar: loss, sync, and four metrics with four measures each. Each button shows
   the greatest score of its path, so that the table is a summary, too. */

import { byId, html } from "./dom.js";
import { MEASURES, METRICS, PATHS, pathTitle, scoreText } from "./format.js";

const HEADS = { abs: "abs", imb: "imb", rel: "rel", weighted: "wtd" };
const MEANINGS = {
  abs: "absolute: the maximum", imb: "absolute imbalance: maximum − average",
  rel: "relative imbalance: 1 − average / maximum",
  weighted: "weighted imbalance: absolute times relative imbalance",
};

export function createPaths({ store }) {
  const cells = new Map();

  function radio(path) {
    const score = html("span", {});
    const input = html("input", {
      type: "radio", name: "metric", value: path, "aria-label": pathTitle(path),
      onchange: () => store.update({ metric: path }),
    });
    cells.set(path, { score, input });
    return html("label", { title: pathTitle(path) }, input, score);
  }

  const wide = (path, name) => html("tr", {}, html("th", { scope: "row" }, name),
    html("td", { colspan: 4 }, radio(path)));
  const heads = html("tr", {}, html("td"), ...Object.keys(MEASURES).map((measure) =>
    html("th", { scope: "col", title: MEANINGS[measure] }, HEADS[measure])));
  const rows = Object.entries(METRICS).map(([metric, title]) =>
    html("tr", {}, html("th", { scope: "row", title }, metric),
      ...Object.keys(MEASURES).map((measure) => html("td", {}, radio(`${metric}-${measure}`)))));
  byId("paths").replaceChildren(html("table", {},
    html("colgroup", {}, html("col", {}), html("col", { span: 4 })), html("tbody", {},
    wide("loss", "loss"), wide("sync", "sync"), heads, ...rows)));

  function greatest(model, path) {
    return model.nodes.reduce((most, _, node) => Math.max(most, model.score(node, path)), 0);
  }

  function show(model, state) {
    for (const path of PATHS) {
      const { score, input } = cells.get(path);
      const text = scoreText(greatest(model, path), path);
      score.textContent = path === "sync" ? `${text} supersteps` : text;
      input.checked = path === state.metric;
    }
  }

  return { show };
}
