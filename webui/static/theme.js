/* Light or dark, and the palette of the shades. Style sheets name colours by variables; what
   is drawn on a canvas asks for their values here. */

import { byId } from "./dom.js";

const THEMES = ["auto", "light", "dark"];
const PALETTES = ["red", "safe"];
const root = document.documentElement;
const listeners = [];
let known = new Map();

function remembered(key, values) {
  try {
    const value = localStorage.getItem(`bsp-${key}`);
    return values.includes(value) ? value : values[0];
  } catch {
    return values[0]; // the browser keeps nothing for pages from files
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(`bsp-${key}`, value);
  } catch {
    // it is only for this page then
  }
}

/* The value of a colour variable, such as colour("--ink"), as rgb(...), for a canvas. */
export function colour(variable) {
  if (!known.has(variable)) {
    const probe = byId("probe");
    probe.style.color = `var(${variable})`;
    known.set(variable, getComputedStyle(probe).color);
  }
  return known.get(variable);
}

function apply() {
  known = new Map();
  for (const listener of listeners) listener();
}

/* Calls fn() whenever the colours have changed. */
export function onTheme(fn) {
  listeners.push(fn);
}

export function theme() {
  return root.dataset.theme ?? "auto";
}

export function palette() {
  return root.dataset.palette ?? "red";
}

export function setTheme(value) {
  if (value === "auto") delete root.dataset.theme;
  else root.dataset.theme = value;
  remember("theme", value);
  apply();
}

export function setPalette(value) {
  root.dataset.palette = value;
  remember("palette", value);
  apply();
}

/* The theme after the present one: as the system says, light, dark. */
export function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
}

export function startTheme() {
  root.dataset.palette = remembered("palette", PALETTES);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  setTheme(remembered("theme", THEMES));
}
