/* What the cells of a heat map were used for, as a picture: each cell is a column of colours, one
   for each part of the account, as high as its share. So a cell of one superstep and one of a
   million are read alike. */

import { html } from "./dom.js";
import { pathTitle } from "./format.js";
import { rgb } from "./ramp.js";
import { PARTS } from "./terms.js";

const MOST_HIGH = 40; // pixels of a cell: more are not seen as more
const LEAST_APART = 6; // pixels of a cell, from which on the last one is left free between rows
const FADED = 0.3; // how much is left of the colours of other parts than the chosen one

/* The colours of the parts, of which one may be chosen: the others fade towards the background. */
function colours(chosen) {
  const sheet = rgb("--sheet");
  return PARTS.map((part) => {
    const own = rgb(`--part-${part}`);
    if (chosen === null || part === chosen) return own;
    return own.map((value, channel) => FADED * value + (1 - FADED) * sheet[channel]);
  });
}

/* Paints a window of a heat map; pixels: the height of all its rows; chosen: a part, or null. */
export function paintStacks(heat, pixels, chosen) {
  const { columns, rows, parts } = heat;
  const high = Math.min(MOST_HIGH, Math.max(1, Math.floor(pixels / rows)));
  const used = high < LEAST_APART ? high : high - 1;
  const image = new ImageData(Math.max(columns, 1), Math.max(rows * high, 1));
  const data = new Uint32Array(image.data.buffer);
  const packed = colours(chosen).map(([red, green, blue]) =>
    (255 << 24 | Math.round(blue) << 16 | Math.round(green) << 8 | Math.round(red)) >>> 0);
  const shares = PARTS.map((part) => parts[part]);
  for (let row = 0, cell = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1, cell += 1) {
      let total = 0;
      for (const share of shares) total += share[cell];
      if (total === 0) continue;
      let [at, sum] = [0, 0];
      for (let part = 0; part < shares.length; part += 1) {
        sum += shares[part][cell];
        for (const until = Math.round(used * sum / total); at < until; at += 1) {
          data[(row * high + at) * columns + column] = packed[part];
        }
      }
    }
  }
  const canvas = html("canvas", { width: image.width, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/* A legend of the parts that some windows have. */
export function stacksLegend(windows) {
  const has = (part) => windows.some(({ parts }) => parts[part].some((share) => share > 0));
  return html("ul", { class: "stacks-legend" }, ...PARTS.filter(has).map((part) =>
    html("li", { "data-part": part }, html("span", { class: "part-swatch" }), pathTitle(part))));
}
