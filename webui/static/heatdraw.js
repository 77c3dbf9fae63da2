/* Draws the timeline: strips of time and h, the heat map, marks, and the axes. Everything is
   drawn from images and sums that are there already, so that a frame takes a millisecond. */

import { integer } from "./format.js";
import { sized } from "./ramp.js";
import { colour } from "./theme.js";
import { ticks } from "./ticks.js";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const STRIP = 34;
const GAP = 14;
const MARKS = 8;
const AXIS = 22;
const LEFT = 58;
const RIGHT = 12;

/* Where the parts of the picture are, in CSS pixels. */
export function layout(width, height, strips) {
  const top = 4 + strips * (STRIP + GAP);
  return {
    left: LEFT, right: width - RIGHT, top, bottom: Math.max(top + 20, height - AXIS - MARKS),
    width: Math.max(width - LEFT - RIGHT, 10),
  };
}

/* Draws a picture: { view: [low, high], images: [{ image, heat }], strips: [{ title, text, most,
   of: name of the heights by column }], marks: ranges on the axis, brush: range or null, cursor: { x, row },
   rows, processes(row), label(value), least } */
export function draw(canvas, picture) {
  const { context, width, height } = sized(canvas);
  const place = layout(width, height, picture.strips.length);
  const [low, high] = picture.view;
  const x = (value) => place.left + (value - low) / (high - low) * place.width;
  context.font = FONT;
  context.textBaseline = "middle";
  context.save();
  context.beginPath();
  context.rect(place.left, 0, place.width, height);
  context.clip();
  context.imageSmoothingEnabled = false;
  for (const { image, heat } of picture.images) {
    const left = x(heat.low);
    context.drawImage(image, left, place.top, x(heat.high) - left, place.bottom - place.top);
  }
  picture.strips.forEach((strip, number) =>
    drawStrip(context, picture, strip, 4 + number * (STRIP + GAP) + STRIP, x));
  drawMarks(context, picture.marks, place, x);
  drawBrush(context, picture.brush, place, x);
  drawCursor(context, picture, place, x);
  context.restore();
  drawStripTitles(context, picture.strips, place);
  drawAxes(context, picture, place, x);
}

function drawStrip(context, { images }, { of, most }, base, x) {
  context.fillStyle = colour("--bar");
  const greatest = most > 0 ? most : 1;
  for (const { heat, covered } of images) {
    for (let column = 0; column < heat.columns; column += 1) {
      const left = x(heat.edges[column]);
      const right = x(heat.edges[column + 1]);
      if (right < 0 || left > context.canvas.width || isCovered(heat, column, covered)) continue;
      const size = heat[of][column] / greatest * STRIP;
      const [from, to] = [Math.floor(left), Math.ceil(right)]; // whole pixels: no seams
      context.fillRect(from, base - size, to - from > 5 ? to - from - 1 : to - from, size);
    }
  }
}

/* Whether a finer window has this column. */
function isCovered({ edges }, column, covered) {
  return covered !== null && edges[column] < covered[1] && edges[column + 1] > covered[0];
}

function drawStripTitles(context, strips, place) {
  strips.forEach(({ title, text }, number) => {
    const base = 4 + number * (STRIP + GAP) + STRIP;
    context.fillStyle = colour("--line");
    context.fillRect(place.left, base, place.width, 1);
    context.fillStyle = colour("--quiet");
    context.textAlign = "right";
    context.fillText(title, place.left - 8, base - STRIP / 2 - 7);
    context.fillText(text, place.left - 8, base - STRIP / 2 + 7);
  });
}

function drawMarks(context, marks, place, x) {
  context.fillStyle = colour("--chosen");
  for (const [from, to] of marks) {
    const left = x(from);
    context.fillRect(left, place.bottom + 3, Math.max(x(to) - left, 1.5), 3);
  }
}

function drawBrush(context, brush, place, x) {
  if (brush === null) return;
  const [left, right] = brush.map(x);
  context.strokeStyle = colour("--chosen");
  context.lineWidth = 1.5;
  context.strokeRect(left, 1, Math.max(right - left, 1), place.bottom);
  context.globalAlpha = 0.55;
  context.fillStyle = colour("--sheet");
  context.fillRect(place.left, place.top, Math.max(left - place.left, 0), place.bottom - place.top);
  context.fillRect(right, place.top, Math.max(place.right - right, 0), place.bottom - place.top);
  context.globalAlpha = 1;
}

function drawCursor(context, { cursor, rows }, place, x) {
  if (cursor === null) return;
  const height = (place.bottom - place.top) / rows;
  const [left, right] = [x(cursor.from), x(cursor.to)];
  context.strokeStyle = colour("--ink");
  context.lineWidth = 1;
  context.strokeRect(Math.round(left) - 0.5, place.top + cursor.row * height,
    Math.max(right - left, 3) + 1, Math.max(height, 3));
}

function drawAxes(context, { view, rows, processes, label, least }, place, x) {
  context.fillStyle = colour("--quiet");
  context.textAlign = "center";
  for (const value of ticks(...view, place.width / 90, least)) {
    const at = x(value);
    context.fillRect(Math.round(at), place.bottom + MARKS, 1, 3);
    const text = label(value, view);
    const half = context.measureText(text).width / 2;
    const middle = Math.min(Math.max(at, place.left + half), place.right - half);
    context.fillText(text, middle, place.bottom + MARKS + 12);
  }
  context.textAlign = "right";
  const height = (place.bottom - place.top) / rows;
  for (const row of ticks(0, rows - 1, (place.bottom - place.top) / 24, 1)) {
    const middle = place.top + (row + 0.5) * height;
    context.fillText(integer(processes(row)[0]), place.left - 8, middle);
  }
}
