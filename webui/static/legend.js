/* The legend: five bins of shade, each with the scores that it stands for. */

import { byId, html } from "./dom.js";
import { pathTitle, roughScore } from "./format.js";

const LIMITS = [0, 0.04, 0.16, 0.36, 0.64, 1];

function meaning(path) {
  if (path === "loss") return "of the cost of the whole run";
  if (path === "sync") return "of the greatest number of supersteps";
  if (path.endsWith("-rel")) return "of all that is possible";
  return "of the greatest maximum in the graph";
}

/* The scores at the limits of the bins, in the unit of the greatest, which alone names it. */
function scores(most, path) {
  const last = roughScore(most, path);
  const inUnit = Number.parseFloat(last.replaceAll(",", "")) / (most || 1);
  return LIMITS.map((limit) =>
    (limit === 1 ? last : String(Number((limit * most * inUnit).toPrecision(2)))));
}

export function createLegend() {
  const host = byId("legend");

  function show(model, { metric }) {
    const swatches = LIMITS.slice(1).map((_, bin) =>
      html("span", { class: "swatch", "data-bin": bin }));
    const limits = scores(model.scale(metric), metric).map((text) => html("span", {}, text));
    host.replaceChildren(
      html("h3", {}, pathTitle(metric)),
      html("div", { class: "swatches", "aria-hidden": "true" }, ...swatches),
      html("div", { class: "limits" }, ...limits),
      html("p", { class: "quiet" }, `0, 4, 16, 36, 64 and 100% ${meaning(metric)}`));
  }

  return { show };
}
