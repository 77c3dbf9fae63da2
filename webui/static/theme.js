/* Light or dark, and the palette of the shades. Style sheets name colours by variables; what
   is drawn on a canvas asks for their values here. */

import { byId } from "./dom.js";

const THEMES = ["auto", "light", "dark"];
const PALETTES = ["red", "safe"];
const BINS = 5;
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

/* Red, green and blue from 0 to 1 of a colour that colour() returned. */
function channels(value) {
  const parts = value.match(/[\d.]+/g).map(Number);
  return value.startsWith("rgb") ? parts.slice(0, 3).map((part) => part / 255) : parts.slice(0, 3);
}

/* Relative luminance, as WCAG 2 defines it. */
export function luminance(value) {
  const [red, green, blue] = channels(value).map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/* Black or white, whichever is easier to read on a colour. */
export function textOn(value) {
  const light = luminance(value);
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000000" : "#ffffff";
}

/* Text on a shade gets its colour from the luminance of the shade. */
function apply() {
  known = new Map();
  for (let bin = 0; bin < BINS; bin += 1) {
    root.style.setProperty(`--on-bin-${bin}`, textOn(colour(`--bin-${bin}`)));
  }
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
