/* Saves what a view shows as a picture: a drawing of elements as SVG with its colours in it, and
   what is drawn on a canvas as PNG. */

import { html } from "./dom.js";
import { colour } from "./theme.js";

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity",
  "font", "text-anchor", "dominant-baseline", "display", "visibility", "paint-order",
];

/* Copies what the style sheets say of an element, and of all inside it, into the elements. */
function inlined(from, to) {
  const styles = getComputedStyle(from);
  for (const name of STYLES) to.style.setProperty(name, styles.getPropertyValue(name));
  [...from.children].forEach((child, position) => inlined(child, to.children[position]));
}

/* The text of an SVG file with a drawing as it is seen. */
export function svgText(drawing) {
  const { clientWidth: width, clientHeight: height } = drawing;
  const copy = drawing.cloneNode(true);
  inlined(drawing, copy);
  const sizes = { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` };
  for (const [name, value] of Object.entries(sizes)) copy.setAttribute(name, value);
  copy.style.background = colour("--sheet");
  return new XMLSerializer().serializeToString(copy);
}

/* A copy of a canvas on the colour of the page, since its own background is transparent. */
function onSheet(canvas) {
  const copy = html("canvas", { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d");
  context.fillStyle = colour("--sheet");
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  return copy;
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  html("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/* Saves an SVG or canvas element; name: of the file, without its ending. */
export function savePicture(element, name) {
  if (element instanceof HTMLCanvasElement) {
    onSheet(element).toBlob((blob) => download(blob, `${name}.png`));
  } else download(new Blob([svgText(element)], { type: "image/svg+xml" }), `${name}.svg`);
}

/* The name of a picture of a run: the program without folders and ending, and the view. */
export function pictureName(program, view) {
  const [stem] = (program ?? "run").split(/[\\/]/).at(-1).split(".");
  return `${stem.replaceAll(/[^\w-]/g, "_") || "run"}-${view}`;
}
