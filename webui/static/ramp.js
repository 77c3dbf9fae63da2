/* Shades as colours for a canvas: they run through the five bins of the legend without steps. */

import { html } from "./dom.js";
import { colour } from "./theme.js";

const STEPS = 255;
const STOPS = ["--bin-0", "--bin-1", "--bin-2", "--bin-3", "--bin-4"];

/* Red, green and blue of a colour variable. */
export function rgb(name) {
  return colour(name).match(/[\d.]+/g).slice(0, 3).map(Number);
}

/* Red, green and blue of shades 0 to 1: 3 bytes for each of 256 steps. */
export function ramp() {
  const stops = STOPS.map(rgb);
  const bytes = new Uint8ClampedArray(3 * (STEPS + 1));
  for (let step = 0; step <= STEPS; step += 1) {
    const place = step / STEPS * (stops.length - 1);
    const stop = Math.min(Math.floor(place), stops.length - 2);
    for (let channel = 0; channel < 3; channel += 1) {
      const [from, to] = [stops[stop][channel], stops[stop + 1][channel]];
      bytes[3 * step + channel] = from + (place - stop) * (to - from);
    }
  }
  return bytes;
}

/* Paints shades (0 to 1; NaN: nothing) into an image, a pixel each, row by row. */
export function paint(shades, columns, rows, bytes) {
  const image = new ImageData(columns, rows);
  for (let cell = 0; cell < shades.length; cell += 1) {
    const shade = shades[cell];
    if (Number.isNaN(shade)) continue;
    const step = 3 * Math.round(Math.min(1, Math.max(0, shade)) * STEPS);
    image.data[4 * cell] = bytes[step];
    image.data[4 * cell + 1] = bytes[step + 1];
    image.data[4 * cell + 2] = bytes[step + 2];
    image.data[4 * cell + 3] = 255;
  }
  const canvas = html("canvas", { width: columns, height: rows });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/* A legend: a ramp with texts at even distances below it. */
export function rampLegend(title, texts) {
  return html("div", { class: "ramp" },
    html("span", { class: "quiet" }, title),
    html("div", { class: "ramp-bar", "aria-hidden": "true" }),
    html("div", { class: "ramp-texts" }, ...texts.map((text) => html("span", {}, text))));
}

/* A canvas as large as its element, in the pixels of the screen; gives { context, width,
   height } with sizes in CSS pixels. */
export function sized(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
