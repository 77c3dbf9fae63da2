/* The function bar: loss, cost, the parts of the account, sync, and four metrics with four measures
   each. Each button shows the greatest score of its path, so that the table is a summary, too. */

import { byId, html } from "./dom.js";
import {
  MEASURES, METRICS, PARTS, PATHS, count, isInSeconds, isPart, pathTitle, roughScore, scoreText, seconds,
} from "./format.js";

const HEADS = { abs: "abs", imb: "imb", rel: "rel", weighted: "wtd" };
const MEANINGS = {
  abs: "absolute: the maximum", imb: "absolute imbalance: maximum − average",
  rel: "relative imbalance: 1 − average / maximum",
  weighted: "weighted imbalance: absolute times relative imbalance",
};

const SHOWN = ["cost", ...PATHS];
const isWide = (path) => isInSeconds(path) || path === "sync";

function fullText(value, path) {
  return path === "sync" ? count(value, "superstep") : scoreText(value, path);
}

export function createPaths({ store }) {
  const cells = new Map();

  function radio(path) {
    const score = html("span", {});
    const input = html("input", {
      type: "radio", name: "metric", value: path, "aria-label": pathTitle(path),
      onchange: () => store.update({ metric: path }),
    });
    const label = html("label", {}, input, score);
    cells.set(path, { score, input, label });
    return label;
  }

  const part = html("select", {
    "aria-label": "Shade by a part of the account", title: "A part of the account as the shade",
    onchange: () => store.update({ metric: part.value || "loss" }),
  });

  const wide = (path, name) => html("tr", {}, html("th", { scope: "row" }, name),
    html("td", { colspan: 4 }, radio(path)));
  const heads = html("tr", {}, html("td"), ...Object.keys(MEASURES).map((measure) =>
    html("th", { scope: "col", title: MEANINGS[measure] }, HEADS[measure])));
  const rows = Object.entries(METRICS).map(([metric, title]) =>
    html("tr", {}, html("th", { scope: "row", title }, metric),
      ...Object.keys(MEASURES).map((measure) => html("td", {}, radio(`${metric}-${measure}`)))));
  byId("paths").replaceChildren(html("table", {},
    html("colgroup", {}, html("col", {}), html("col", { span: 4 })), html("tbody", {},
    wide("loss", "loss"), wide("cost", "cost"),
    html("tr", {}, html("th", { scope: "row", title: "a part of the account" }, "part"),
      html("td", { colspan: 4 }, part)),
    wide("sync", "sync"), heads, ...rows)));

  function greatest(model, path) {
    return model.nodes.reduce((most, _, node) => Math.max(most, model.score(node, path)), 0);
  }

  function show(model, state, changed) {
    for (const path of SHOWN) cells.get(path).input.checked = path === state.metric;
    if (changed.has("model")) {
      showScores(model);
      offerParts(model.account);
    }
    part.value = isPart(state.metric) ? state.metric : "";
    part.classList.toggle("chosen", part.value !== "");
  }

  function offerParts({ parts }) {
    const spent = new Map(parts.map((each) => [each.name, each.seconds]));
    part.replaceChildren(html("option", { value: "" }, "part of the account …"),
      ...PARTS.map((name) => html("option", { value: name }, `${pathTitle(name)}: ${seconds(spent.get(name))}`)));
  }

  function showScores(model) {
    for (const path of SHOWN) {
      const { score, label } = cells.get(path);
      const most = greatest(model, path);
      score.textContent = isWide(path) ? fullText(most, path) : roughScore(most, path);
      label.title = `${pathTitle(path)}: at most ${fullText(most, path)}`;
    }
  }

  return { show };
}
