/* Draws the timeline: strips of time and h, the heat map, marks, and the axes. Everything is
   drawn from images and sums that are there already, so that a frame takes a millisecond. */

import { integer } from "./format.js";
import { sized } from "./ramp.js";
import { colour } from "./theme.js";
import { ticks } from "./ticks.js";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const TOP = 16;
const STRIP = 34;
const GAP = 16; // has room for the caption of the strip below it
const MARKS = 8;
const AXIS = 22;
const LEFT = 58;
const HOST = 84; // further left: the names of the hosts, where there are several
const LEAST_HOST = 13; // pixels of a host's rows that have room for its name
const RIGHT = 12;

/* Where the parts of the picture are, in CSS pixels; hosts: whether they are named. */
export function layout(width, height, strips, hosts) {
  const top = TOP + strips * (STRIP + GAP);
  const left = LEFT + (hosts ? HOST : 0);
  return {
    left, right: width - RIGHT, top, bottom: Math.max(top + 20, height - AXIS - MARKS),
    width: Math.max(width - left - RIGHT, 10),
  };
}

/* The rows of each host, in order: { name, first, last }. A row of processes of several hosts
   belongs to that of its first one. */
export function hostRows(hosts, rows, processes) {
  const found = [];
  for (let row = 0; row < rows; row += 1) {
    const name = hosts.names[hosts.of[processes(row)[0]]];
    if (found.at(-1)?.name === name) found.at(-1).last = row;
    else found.push({ name, first: row, last: row });
  }
  return found;
}

/* The bottom of a strip. */
function baseOf(strip) {
  return TOP + strip * (STRIP + GAP) + STRIP;
}

/* Draws a picture: { view: [low, high], images: [{ image, heat }], strips: [{ title, text, caption,
   most, of: name of the heights by column }], marks: ranges on the axis, brush: range or null, cursor: { x, row },
   rows, processes(row), hosts: rows by host or null, label(value), least } */
export function draw(canvas, picture) {
  const { context, width, height } = sized(canvas);
  const place = layout(width, height, picture.strips.length, picture.hosts !== null);
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
    drawStrip(context, picture, strip, baseOf(number), x));
  drawMarks(context, picture.marks, place, x);
  drawBrush(context, picture.brush, place, x);
  drawCursor(context, picture, place, x);
  context.restore();
  drawStripTitles(context, picture.strips, place);
  drawAxes(context, picture, place, x);
  if (picture.hosts !== null) drawHosts(context, picture, place);
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
  strips.forEach(({ title, text, caption }, number) => {
    const base = baseOf(number);
    context.fillStyle = colour("--line");
    context.fillRect(place.left, base, place.width, 1);
    context.fillStyle = colour("--quiet");
    context.textAlign = "right";
    context.textAlign = "left";
    context.fillText(shortened(context, caption, place.width), place.left, base - STRIP - 8);
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

/* The name of each host beside its processes, and a line between hosts. */
function drawHosts(context, { rows, hosts }, place) {
  const height = (place.bottom - place.top) / rows;
  context.textAlign = "left";
  let free = place.top; // names do not overlap
  for (const { name, first, last } of hosts) {
    const [top, bottom] = [place.top + first * height, place.top + (last + 1) * height];
    context.fillStyle = colour("--line");
    if (first > 0 && bottom - top >= 2) context.fillRect(0, Math.round(top), place.left, 1);
    const middle = (Math.max(top, free) + bottom) / 2;
    if (bottom - free < LEAST_HOST) continue;
    context.fillStyle = colour("--quiet");
    context.fillText(shortened(context, name, place.left - LEFT + 10), 4, middle);
    free = middle + LEAST_HOST / 2;
  }
}

function shortened(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
