/* The sliders of a node model's variables. */

import { byId, html } from "./dom.js";
import { shortcut } from "./keys.js";

const SAVED = "This page was saved to a file at the points that were named: bsp view --fit shows others.";

/* The row of a variable: label, field and slider, on which the values of the runs are marked. */
function row({ name, label, title, steps, measured }, set, disabled) {
  const id = `slider-${name}`;
  const last = steps.length - 1;
  let sliding = false;
  let shown = "";
  const slider = html("input", {
    type: "range", id, min: 0, max: last, step: 1, disabled,
    oninput: () => {
      set(name, steps[Number(slider.value)], !sliding);
      sliding = true;
    },
    onchange: () => { sliding = false; },
  });
  const field = html("input", {
    type: "text", inputmode: "numeric", autocomplete: "off", "aria-label": `${name}: value`, disabled,
    title: "A number, as in 1000, 1e6 or 2^30", pattern: String.raw` *[\d.e+]+(\^[\d.]+)? *`,
    onchange: async () => {
      if (!field.reportValidity() || !await set(name, field.value.trim(), true)) field.value = shown;
    },
  });
  const runs = html("span", {});
  runs.style.left = `${100 * measured[0] / last}%`;
  runs.style.width = `${Math.max(100 * (measured[1] - measured[0]) / last, 1)}%`;
  const note = html("p", { class: "quiet" });
  const element = html("div", { class: "variable" },
    html("label", { for: id, title: title || null }, label), field,
    html("div", { class: "track" }, slider, html("div", { class: "measured", "aria-hidden": "true" }, runs)), note);

  function show({ step, text, note: about, beyond }) {
    shown = text;
    if (!sliding) slider.value = step;
    slider.setAttribute("aria-valuetext", text);
    if (document.activeElement !== field || field.value !== text) field.value = text;
    note.textContent = about;
    element.classList.toggle("beyond", beyond);
  }

  return { element, show };
}

/** @param {any} context */
export function createSliders({ store, ask, say, isSaved }, data) {
  const { update } = store;
  let point = {};
  let wanted = {}; // what was set since the server has last agreed: keys come before its answers
  let at = 0; // the step of the number of processes
  const varied = data.variables.filter(({ fixed }) => !fixed);
  const rows = new Map(varied.map((variable) => [variable.name, row(variable, set, isSaved)]));
  const named = html("select", {
    "aria-label": "Named points", hidden: data.points.length < 2,
    onchange: () => update({ point: data.points[Number(named.value)].point }),
  }, ...data.points.map(({ title }, number) => html("option", { value: number }, title)));
  byId("sliders").replaceChildren(named,
    ...[...rows.values()].map(({ element }) => element),
    html("p", { class: "quiet", hidden: !isSaved }, SAVED));

  /* Sets a variable, unless the server cannot read its value, and says then why. */
  async function set(name, text, push) {
    const given = wanted = { ...wanted, [name]: text };
    try {
      await ask({ point: { ...point, ...given } });
      if (given !== wanted) return true; // a later one asks for this value, too
      point = { ...point, ...given };
      wanted = {};
      update({ point }, { push });
      say("");
      return true;
    } catch (error) {
      if (given === wanted) wanted = {};
      say(error.message);
      return false;
    }
  }

  const { steps } = data.variables.find(({ name }) => name === "p"); // powers of two
  const step = (by) => () => {
    if (steps[at + by] === undefined) return;
    at += by; // at once, since the next key may come before the answer
    set("p", steps[at], true);
  };
  shortcut(">", "Twice as many processes", step(1), { section: "Prediction" });
  shortcut("<", "Half as many processes", step(-1), { section: "Prediction" });
  shortcut("p", "To the slider of the processes", () => byId("slider-p").focus(), { section: "Prediction" });

  function show({ predicted }) {
    point = predicted.point;
    if (!("p" in wanted)) at = predicted.sliders.p.step;
    const isHere = (each) => Object.entries(point).every(([name, text]) => each.point[name] === text);
    named.value = String(data.points.findIndex(isHere)); // none where another point is shown
    for (const [name, each] of rows) each.show(predicted.sliders[name]);
  }

  return { show };
}
