/* A figure of a Machine with its slider, on a logarithmic scale, and its number field. */

import { html } from "./dom.js";
import { seconds } from "./format.js";

/* The figures: their fields in the state, what they are the cost of, and the powers of ten
   between which they slide. `unit` is that of the number field, in seconds for g and l. */
export const FIGURES = [
  { name: "g", of: "per byte", from: -12, to: -5, unit: 1e-9, text: "ns" },
  { name: "l", of: "per superstep", from: -8, to: 0, unit: 1e-6, text: "µs" },
  { name: "speed", of: "of the run’s", from: -3, to: 3, unit: 1, text: "x" },
];
const STEPS = 400; // of a slider

/* The value of a figure in some rates: seconds, or how many times as fast as in the run. */
export function valueOf({ name }, rates) {
  return name === "speed" ? 1 / rates.ratio : rates[name];
}

export function written({ name }, value) {
  return name === "speed" ? `${Number(value.toPrecision(3))}x` : seconds(value);
}

/* The position of a value on its slider; 0 and what is too small are at its beginning. */
function position({ from, to }, value) {
  const power = value > 0 ? Math.log10(value) : from;
  return Math.round(STEPS * (Math.min(to, Math.max(from, power)) - from) / (to - from));
}

function valueAt({ from, to }, at) {
  return Number((10 ** (from + at * (to - from) / STEPS)).toPrecision(3));
}

/* The value in a number field; null where it is none that the figure can have. */
function typed({ name, unit }, text) {
  const value = Number(text) * unit;
  const possible = name === "speed" ? value > 0 : value >= 0;
  return text.trim() !== "" && Number.isFinite(value) && possible ? value : null;
}

/* The label, slider and number field of a figure.

   set(value, push): called when the reader changes it; null for the Machine's own value. Of
   the steps of a moving slider only the first makes an entry of the history, so that back
   returns to where it began. Returns { cells, show(rates, isSet) }. */
export function figureRow(figure, set, disabled = false) {
  let sliding = false;
  let typing = false;
  let shown = null; // arguments of show
  const id = `machine-${figure.name}`;
  const slider = html("input", {
    type: "range", min: 0, max: STEPS, step: 1, id, disabled,
    oninput: () => {
      set(valueAt(figure, Number(slider.value)), !sliding);
      sliding = true;
    },
    onchange: () => { sliding = false; },
  });
  const field = html("input", {
    type: "number", min: 0, step: "any", disabled, "aria-label": `${figure.name} in ${figure.text}`,
    oninput: () => { typing = true; },
    onblur: () => { typing = false; },
    onchange: () => {
      typing = false;
      set(typed(figure, field.value), true);
      show(...shown); // where the text was no value, and nothing changed
    },
  });
  const cells = [
    html("label", { for: id }, html("b", {}, figure.name), ` ${figure.of}`),
    slider,
    html("span", { class: "field" }, field, html("span", {}, figure.text)),
  ];

  function show(rates, isSet) {
    shown = [rates, isSet];
    const value = valueOf(figure, rates);
    if (!sliding) slider.value = position(figure, value);
    slider.setAttribute("aria-valuetext", written(figure, value));
    if (!typing) field.value = String(Number((value / figure.unit).toPrecision(4)));
    field.classList.toggle("set", isSet);
  }

  return { cells, show };
}
