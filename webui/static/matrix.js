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

/* An answer with its cells by place: { ..., rows, columns, at(row, column), most, least }. */
function arranged(answer) {
  const parts = ({ first, end, size }) => Math.ceil((end - first) / size);
  const [rows, columns] = [parts(answer.senders), parts(answer.receivers)];
  const { cells } = answer;
  const sizes = new Float64Array(rows * columns);
  const messages = new Float64Array(rows * columns);
  cells.sender.forEach((row, i) => {
    sizes[row * columns + cells.receiver[i]] = cells.bytes[i];
    messages[row * columns + cells.receiver[i]] = cells.messages[i];
  });
  const moved = cells.bytes.filter((size) => size > 0);
  return {
    ...answer, rows, columns, sizes, sent: messages,
    most: moved.reduce((a, b) => Math.max(a, b), 0), least: moved.reduce((a, b) => Math.min(a, b), Infinity),
  };
}

/* The shade of a number of bytes: part of the greatest, or between least and greatest on a
   logarithmic scale; NaN of nothing. */
function shadeOf(size, { least, most }, logarithmic) {
  if (size === 0) return NaN;
  if (!logarithmic || most === least) return size / most;
  const part = Math.log(size / least) / Math.log(most / least);
  return LEAST_SHADE + (1 - LEAST_SHADE) * part;
}

function pids({ first, end, size }, block) {
  const from = first + block * size;
  return [from, Math.min(end, from + size) - 1];
}

/* Makes the canvas. read(text, details): what is under the pointer; zoom(senders, receivers): ranges of
   pids that the reader wants to see more finely. { canvas, show(answer, logarithmic, hosts), redraw() } */
export function createMatrix(read, zoom) {
  const canvas = html("canvas", {
    class: "matrix", tabindex: 0, role: "application",
    "aria-label": "Matrix of bytes from each process to each. Arrow keys move the cursor.",
  });
  let data = null;
  let image = null;
  let hosts = null;
  let logarithmic = true;
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
    const height = at.side / data.rows;
    data.h_out.most.forEach((value, row) => {
      context.fillRect(at.right + GAP, at.top + row * height, value / most * BARS, Math.max(height - (height > 4 ? 1 : 0), 0.7));
    });
    const width = at.side / data.columns;
    data.h_in.most.forEach((value, column) => {
      context.fillRect(at.left + column * width, at.bottom + GAP, Math.max(width - (width > 4 ? 1 : 0), 0.7), value / most * BARS);
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
    for (const row of ticks(0, data.rows - 1, at.side / 22, 1)) {
      context.fillText(integer(pids(data.senders, row)[0]), at.left - 6, at.top + (row + 0.5) * at.side / data.rows);
    }
    context.textAlign = "center";
    for (const column of ticks(0, data.columns - 1, at.side / 34, 1)) {
      context.fillText(integer(pids(data.receivers, column)[0]), at.left + (column + 0.5) * at.side / data.columns, at.top - 10);
    }
  }

  function drawCursor(context, at) {
    if (cursor === null) return;
    const [row, column] = cursor;
    const [height, width] = [at.side / data.rows, at.side / data.columns];
    context.strokeStyle = colour("--ink");
    context.lineWidth = 1;
    if (row !== null) context.strokeRect(at.left - 0.5, at.top + row * height, at.side + 1, Math.max(height, 2));
    if (column !== null) context.strokeRect(at.left + column * width, at.top - 0.5, Math.max(width, 2), at.side + 1);
  }

  // -- what is under the pointer -------------------------------------------------------------

  function who(blocks, block) {
    return processRange(hosts, ...pids(blocks, block));
  }

  function readCell(row, column) {
    const cell = row * data.columns + column;
    const size = data.sizes[cell];
    const part = data.bytes > 0 ? size / data.bytes : 0;
    return [
      `From ${who(data.senders, row)} to ${who(data.receivers, column)}`,
      `${bytes(size)} in ${count(data.sent[cell], "message")}, ${percent(part)} of all`,
    ];
  }

  function readSum(blocks, block, sums, verb) {
    const single = blocks.size === 1;
    const most = `; most by ${processName(hosts, sums.pid[block])}: ${bytes(sums.most[block])}`;
    const [first, ...rest] = who(blocks, block);
    const plural = pids(blocks, block)[0] !== pids(blocks, block)[1];
    return [
      `${first.toUpperCase()}${rest.join("")} ${verb}${plural ? "" : "s"} ${bytes(sums.total[block])}`,
      single ? "" : most.slice(2),
    ];
  }

  function readCursor() {
    if (cursor === null || data === null) return read(null);
    const [row, column] = cursor;
    if (row !== null && column !== null) return read(...readCell(row, column));
    if (row !== null) return read(...readSum(data.senders, row, data.h_out, "send"));
    return read(...readSum(data.receivers, column, data.h_in, "receive"));
  }

  function setCursor(next) {
    cursor = next;
    readCursor();
    redraw();
  }

  function point({ offsetX, offsetY }) {
    if (data === null) return;
    const at = place();
    const row = Math.floor((offsetY - at.top) / at.side * data.rows);
    const column = Math.floor((offsetX - at.left) / at.side * data.columns);
    const [inRows, inColumns] = [row >= 0 && row < data.rows, column >= 0 && column < data.columns];
    const besideRows = inRows && offsetX >= at.right;
    const besideColumns = inColumns && offsetY >= at.bottom;
    if (inRows && inColumns) setCursor([row, column]);
    else if (besideRows) setCursor([row, null]);
    else if (besideColumns) setCursor([null, column]);
    else setCursor(null);
  }

  function zoomIn() {
    if (cursor === null || cursor.includes(null)) return;
    const [senders, receivers] = [data.senders, data.receivers];
    if (senders.size === 1 && receivers.size === 1) return;
    const range = (blocks, block) => {
      const [from, to] = pids(blocks, block);
      return `${from},${to + 1}`;
    };
    zoom(range(senders, cursor[0]), range(receivers, cursor[1]));
  }

  function onKey(event) {
    if (event.key in ARROWS) {
      const [down, right] = ARROWS[event.key];
      const [row, column] = cursor ?? [-down, -right];
      const kept = (value, length) => Math.min(Math.max(value, 0), length - 1);
      setCursor([kept((row ?? 0) + down, data.rows), kept((column ?? 0) + right, data.columns)]);
    } else if (event.key === "Enter") zoomIn();
    else if (event.key === "Escape") zoom(null, null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("pointerleave", () => document.activeElement !== canvas && setCursor(null));
  canvas.addEventListener("dblclick", zoomIn);
  canvas.addEventListener("keydown", (event) => data !== null && onKey(event));
  new ResizeObserver(redraw).observe(canvas);

  function show(answer, scale, where) {
    hosts = where;
    if (data === null || answer !== data.answer) {
      data = { ...arranged(answer), answer };
      cursor = null;
      readCursor();
    }
    logarithmic = scale;
    const shades = Float32Array.from(data.sizes, (size) => shadeOf(size, data, logarithmic));
    image = paint(shades, data.columns, data.rows, ramp());
    redraw();
    return { least: data.least, most: data.most };
  }

  return { canvas, show, redraw };
}
