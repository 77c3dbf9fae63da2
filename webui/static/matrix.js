/* The matrix of bytes from senders (rows) to receivers (columns), with bars of what each
   process sends and receives. */

import { html } from "./dom.js";
import { bytes, count, integer, percent } from "./format.js";
import { processName, processRange } from "./names.js";
import { paint, ramp, sized } from "./ramp.js";
import { colour } from "./theme.js";
import { ticks } from "./ticks.js";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const LEFT = 46;
const TOP = 38;
const BARS = 64; // length of the longest bar
const GAP = 8;
const LARGEST = 460; // pixels of the matrix
const LEAST_SHADE = 0.12; // of a cell with few bytes on the logarithmic scale
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/* An answer with its cells by place, row by row: { ..., count (of rows, and of columns), sizes, sent, most, least }. */
function arranged(answer) {
  const number = Math.ceil(answer.nprocs / answer.block);
  const { cells } = answer;
  const sizes = new Float64Array(number * number);
  const messages = new Float64Array(number * number);
  cells.sender.forEach((row, i) => {
    sizes[row * number + cells.receiver[i]] = cells.bytes[i];
    messages[row * number + cells.receiver[i]] = cells.messages[i];
  });
  const moved = cells.bytes.filter((size) => size > 0);
  return {
    ...answer, count: number, sizes, sent: messages,
    most: moved.reduce((a, b) => Math.max(a, b), 0), least: moved.reduce((a, b) => Math.min(a, b), Infinity),
  };
}

/* The shade of a number of bytes, between least and greatest on a logarithmic scale; NaN of nothing. */
function shadeOf(size, { least, most }) {
  if (size === 0) return NaN;
  if (most === least) return 1;
  const part = Math.log(size / least) / Math.log(most / least);
  return LEAST_SHADE + (1 - LEAST_SHADE) * part;
}

/* The first and the last process of a row or column. */
function pids({ nprocs, block }, at) {
  return [at * block, Math.min(nprocs, (at + 1) * block) - 1];
}

/* Makes the canvas. read(text, details): what is under the pointer. { canvas, show(answer, hosts), redraw() } */
export function createMatrix(read) {
  const canvas = html("canvas", {
    class: "matrix", tabindex: 0, role: "application",
    "aria-label": "Matrix of bytes from each process to each. Arrow keys move the cursor.",
  });
  let data = null;
  let image = null;
  let hosts = null;
  let cursor = null; // [row, column]; the row or column is null beside the cells

  function place() {
    const side = Math.min(LARGEST, Math.max(40, canvas.clientWidth - LEFT - BARS - GAP - 1));
    return { left: LEFT, top: TOP, side, right: LEFT + side, bottom: TOP + side };
  }

  function redraw() {
    if (data === null || canvas.clientWidth === 0) return;
    const at = place();
    canvas.style.height = `${at.bottom + GAP + BARS + 2}px`;
    const { context } = sized(canvas);
    context.font = FONT;
    context.textBaseline = "middle";
    context.imageSmoothingEnabled = false;
    context.fillStyle = colour("--panel");
    context.fillRect(at.left, at.top, at.side, at.side);
    context.drawImage(image, at.left, at.top, at.side, at.side);
    context.strokeStyle = colour("--line");
    context.strokeRect(at.left - 0.5, at.top - 0.5, at.side + 1, at.side + 1);
    drawBars(context, at);
    drawLabels(context, at);
    drawCursor(context, at);
  }

  function drawBars(context, at) {
    const most = Math.max(...data.h_out.most, ...data.h_in.most, 1);
    context.fillStyle = colour("--bar");
    const size = at.side / data.count;
    const thick = Math.max(size - (size > 4 ? 1 : 0), 0.7);
    data.h_out.most.forEach((value, row) => {
      context.fillRect(at.right + GAP, at.top + row * size, value / most * BARS, thick);
    });
    data.h_in.most.forEach((value, column) => {
      context.fillRect(at.left + column * size, at.bottom + GAP, thick, value / most * BARS);
    });
  }

  function drawLabels(context, at) {
    context.fillStyle = colour("--quiet");
    context.textAlign = "left";
    context.fillText("to process →", at.left, 8);
    context.fillText("h out", at.right + GAP, at.top - 10);
    context.textAlign = "right";
    context.fillText("from ↓", at.left - 6, at.top - 10);
    context.fillText("h in", at.left - 6, at.bottom + GAP + 8);
    for (const row of ticks(0, data.count - 1, at.side / 22, 1)) {
      context.fillText(integer(pids(data, row)[0]), at.left - 6, at.top + (row + 0.5) * at.side / data.count);
    }
    context.textAlign = "center";
    for (const column of ticks(0, data.count - 1, at.side / 34, 1)) {
      context.fillText(integer(pids(data, column)[0]), at.left + (column + 0.5) * at.side / data.count, at.top - 10);
    }
  }

  function drawCursor(context, at) {
    if (cursor === null) return;
    const [row, column] = cursor;
    const size = at.side / data.count;
    context.strokeStyle = colour("--ink");
    context.lineWidth = 1;
    if (row !== null) context.strokeRect(at.left - 0.5, at.top + row * size, at.side + 1, Math.max(size, 2));
    if (column !== null) context.strokeRect(at.left + column * size, at.top - 0.5, Math.max(size, 2), at.side + 1);
  }

  // -- what is under the pointer -------------------------------------------------------------

  const who = (at) => processRange(hosts, ...pids(data, at));

  function readCell(row, column) {
    const cell = row * data.count + column;
    const size = data.sizes[cell];
    const part = data.bytes > 0 ? size / data.bytes : 0;
    return [
      `From ${who(row)} to ${who(column)}`,
      `${bytes(size)} in ${count(data.sent[cell], "message")}, ${percent(part)} of all`,
    ];
  }

  function readSum(at, sums, verb) {
    const [first, ...rest] = who(at);
    const [low, high] = pids(data, at);
    return [
      `${first.toUpperCase()}${rest.join("")} ${verb}${low === high ? "s" : ""} ${bytes(sums.total[at])}`,
      low === high ? "" : `most by ${processName(hosts, sums.pid[at])}: ${bytes(sums.most[at])}`,
    ];
  }

  function readCursor() {
    if (cursor === null || data === null) return read(null);
    const [row, column] = cursor;
    if (row !== null && column !== null) return read(...readCell(row, column));
    if (row !== null) return read(...readSum(row, data.h_out, "send"));
    return read(...readSum(column, data.h_in, "receive"));
  }

  function setCursor(next) {
    cursor = next;
    readCursor();
    redraw();
  }

  function point({ offsetX, offsetY }) {
    if (data === null) return;
    const at = place();
    const row = Math.floor((offsetY - at.top) / at.side * data.count);
    const column = Math.floor((offsetX - at.left) / at.side * data.count);
    const [inRows, inColumns] = [row, column].map((each) => each >= 0 && each < data.count);
    const besideRows = inRows && offsetX >= at.right;
    const besideColumns = inColumns && offsetY >= at.bottom;
    if (inRows && inColumns) setCursor([row, column]);
    else if (besideRows) setCursor([row, null]);
    else if (besideColumns) setCursor([null, column]);
    else setCursor(null);
  }

  function onKey(event) {
    if (!(event.key in ARROWS)) return;
    const [down, right] = ARROWS[event.key];
    const [row, column] = cursor ?? [-down, -right];
    const kept = (value) => Math.min(Math.max(value, 0), data.count - 1);
    setCursor([kept((row ?? 0) + down), kept((column ?? 0) + right)]);
    event.preventDefault();
    event.stopPropagation();
  }

  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("pointerleave", () => document.activeElement !== canvas && setCursor(null));
  canvas.addEventListener("keydown", (event) => data !== null && onKey(event));
  new ResizeObserver(redraw).observe(canvas);

  function show(answer, where) {
    hosts = where;
    if (data === null || answer !== data.answer) {
      data = { ...arranged(answer), answer };
      cursor = null;
      readCursor();
    }
    const shades = Float32Array.from(data.sizes, (size) => shadeOf(size, data));
    image = paint(shades, data.count, data.count, ramp());
    redraw();
    return { least: data.least, most: data.most };
  }

  return { canvas, show, redraw };
}
