/* A figure of a Machine in a number field. */

import { html } from "./dom.js";
import { seconds } from "./format.js";

/* The figures: their fields in the state, and what they are the cost of. `unit` is that of the
   number field, in seconds for g and l. */
export const FIGURES = [
  { name: "g", of: "per byte", unit: 1e-9, text: "ns" },
  { name: "l", of: "per superstep", unit: 1e-6, text: "µs" },
  { name: "speed", of: "of the run’s", unit: 1, text: "x" },
];

export function written({ name }, value) {
  return name === "speed" ? `${Number(value.toPrecision(3))}x` : seconds(value);
}

/* The value in a number field; null where it is none that the figure can have. */
function typed({ name, unit }, text) {
  const value = Number(text) * unit;
  const possible = name === "speed" ? value > 0 : value >= 0;
  return text.trim() !== "" && Number.isFinite(value) && possible ? value : null;
}

/* The label and number field of a figure; set(value): null for the Machine's own. Returns
   { cells, show(rates, isSet) }. */
export function figureRow(figure, set, disabled = false) {
  const { name, of, unit, text } = figure;
  let isTyping = false;
  let shown = null; // arguments of show
  const id = `machine-${name}`;
  const field = html("input", {
    type: "number", id, min: 0, step: "any", disabled, "aria-label": `${name} in ${text}`,
    oninput: () => { isTyping = true; },
    onchange: () => {
      isTyping = false;
      set(typed(figure, field.value));
      show(...shown); // where the text was no value, and nothing changed
    },
  });
  const cells = [
    html("label", { for: id }, html("b", {}, name), ` ${of}`),
    html("span", { class: "field" }, field, html("span", {}, text)),
  ];

  function show(rates, isSet) {
    shown = [rates, isSet];
    const value = name === "speed" ? 1 / rates.ratio : rates[name];
    if (!isTyping) field.value = String(Number((value / unit).toPrecision(4)));
    field.classList.toggle("set", isSet);
  }

  return { cells, show };
}
