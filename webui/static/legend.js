/* The legend: five bins of shade, each with the scores that it stands for. */

import { byId, html } from "./dom.js";
import { isInSeconds, pathTitle, roughScore } from "./format.js";

const LIMITS = [0, 0.04, 0.16, 0.36, 0.64, 1];

function meaning(path) {
  if (isInSeconds(path)) return "of the greatest of a line, or a tenth of the time in main";
  if (path === "sync") return "of the greatest number of supersteps";
  if (path.endsWith("-rel")) return "of all that is possible";
  return "of the greatest maximum in the graph";
}

/* The scores at the limits of the bins, in the unit of the greatest, and that unit. */
function scores(most, path) {
  if (!(most > 0)) return { texts: LIMITS.map(() => "0"), unit: "" };
  const [, figures, unit] = /^([\d.,]+) ?(.*)$/.exec(roughScore(most, path));
  const inUnit = Number(figures.replaceAll(",", "")) / most;
  const texts = LIMITS.map((limit) => String(Number((limit * most * inUnit).toPrecision(2))));
  return { texts, unit };
}

/* words: titleOf(path) and meaningOf(path), what is 100%. */
export function createLegend(words = {}) {
  const { titleOf = pathTitle, meaningOf = meaning } = words;
  const host = byId("legend");

  /** @type {View["show"]} */
  function show(model, { metric, view }) {
    host.hidden = view === "compare"; // its graph has a legend of its own
    const swatches = LIMITS.slice(1).map((_, bin) =>
      html("span", { class: "swatch", "data-bin": bin }));
    const { texts, unit } = scores(model.scale(metric), metric);
    const limits = texts.map((text) => html("span", {}, text));
    host.replaceChildren(
      html("h3", {}, html("span", { class: "title" }, titleOf(metric)), unit ? ` in ${unit}` : ""),
      html("div", { class: "swatches", "aria-hidden": "true" }, ...swatches),
      html("div", { class: "limits" }, ...limits),
      html("p", { class: "quiet" }, `0, 4, 16, 36, 64 and 100% ${meaningOf(metric)}`));
  }

  return { show };
}
