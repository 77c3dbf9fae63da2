/* The sliders of a node model's variables, and the choice of the reference. */

import { button, byId, html } from "./dom.js";
import { shortcut } from "./keys.js";
import { allowed, largest, pointText, readValue, scaleOf, valueText } from "./points.js";

const times = (ratio) => `${Number.isInteger(ratio) ? valueText(ratio)
  : Number(ratio.toPrecision(3))} times`;

/* How far a value is beyond those of the runs, in words; empty inside. */
function beyond({ values }, value) {
  const [low, high] = [values[0], values.at(-1)];
  if (value > high) {
    return high > 0 ? `${times(value / high)} the largest run` : "beyond the runs";
  }
  if (value < low) {
    return value > 0 ? `the smallest run is ${times(low / value)} as large` : "below the runs";
  }
  return "";
}

/* The row of a variable: label, field and slider, on which the values of the runs are marked. */
function row(variable, most, set) {
  const { name, values } = variable;
  const scale = scaleOf(variable, most);
  const id = `slider-${name}`;
  let sliding = false;
  const slider = html("input", {
    type: "range", id, min: 0, max: scale.steps, step: 1,
    oninput: () => {
      set(name, scale.at(Number(slider.value)), !sliding);
      sliding = true;
    },
    onchange: () => { sliding = false; },
  });
  const field = html("input", {
    type: "text", inputmode: "numeric", autocomplete: "off", "aria-label": `${name}: value`,
    title: "A number, as in 1000, 1e6 or 2^30",
    onchange: () => {
      const value = readValue(field.value);
      if (value !== null) set(name, allowed(variable, value, most), true);
      field.value = valueText(shown);
    },
  });
  let shown = values[0];
  const part = (value) => 100 * scale.of(value) / scale.steps;
  const marks = html("div", { class: "measured", "aria-hidden": "true" },
    html("span", {}));
  marks.firstChild.style.left = `${part(values[0])}%`;
  marks.firstChild.style.width = `${Math.max(part(values.at(-1)) - part(values[0]), 1)}%`;
  const note = html("p", { class: "quiet" });
  const label = name === "p" ? "p, processes" : name;
  const element = html("div", { class: "variable" },
    html("label", { for: id, title: variable.origin || null }, label), field,
    html("div", { class: "track" }, slider, marks), note);

  function show(value) {
    shown = value;
    if (!sliding) slider.value = scale.of(value);
    slider.setAttribute("aria-valuetext", valueText(value));
    if (document.activeElement !== field) field.value = valueText(value);
    const far = beyond(variable, value);
    note.textContent = far ? `extrapolated: ${far}`
      : `in the range of the runs, ${valueText(values[0])} to ${valueText(values.at(-1))}`;
    element.classList.toggle("beyond", far !== "");
  }

  return { element, show };
}

export function createSliders({ store }, data) {
  const { update } = store;
  const host = byId("sliders");
  let at = null;
  const set = (name, value, push) => update({ point: { ...at.point, [name]: value } }, { push });
  const varied = data.variables.filter(({ name, values }) => values.length > 1 || name === "p");
  const fixed = data.variables.filter((each) => !varied.includes(each));
  const rows = new Map(varied.map((variable) =>
    [variable.name, row(variable, data.most_processes, set)]));
  const about = html("p", { class: "quiet" });
  const take = button("Take this point", () => update({ reference: at.point }),
    { class: "plain-button", title: "Compare with the point of the sliders from now on" });
  const reset = button("Largest run", () => update({ reference: null }), { class: "plain-button" });
  host.replaceChildren(
    ...[...rows.values()].map(({ element }) => element),
    ...(fixed.length === 0 ? [] : [html("p", { class: "quiet" }, `In all runs: ${
      pointText(largest(fixed))}`)]),
    html("h3", {}, "Reference"), about, html("div", { class: "buttons" }, take, reset));
  const step = (factor) => () => {
    const p = Math.min(Math.max(Math.round(at.point.p * factor), 1), data.most_processes);
    if (p !== at.point.p) set("p", p, true);
  };
  shortcut(">", "Twice as many processes", step(2), { section: "Prediction" });
  shortcut("<", "Half as many processes", step(0.5), { section: "Prediction" });
  shortcut("p", "To the slider of the processes", () => byId("slider-p").focus(),
    { section: "Prediction" });

  /* at: { point, reference }. */
  function show(shown, isLargest) {
    at = shown;
    for (const [name, { show: showRow }] of rows) showRow(at.point[name]);
    about.textContent = `${isLargest ? "the largest run: " : ""}${pointText(at.reference)}`;
    reset.disabled = isLargest;
  }

  return { show };
}
