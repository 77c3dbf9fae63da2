/* The charts of the panel of processes: a pie for a few, and bars by pid for many. A chart is
   { element, mark(pid) }; mark shows which process is meant. */

import { svg } from "./dom.js";

const RADIUS = 56;
const PULLED = 4; // distance by which the greatest slice is pulled out
const WIDTH = 260; // columns of the bars, one a pixel in a panel of usual width
const HEIGHT = 72;

function point(turn, radius = RADIUS) {
  return `${radius * Math.sin(2 * Math.PI * turn)},${-radius * Math.cos(2 * Math.PI * turn)}`;
}

function slicePath(from, to) {
  const arc = `A${RADIUS},${RADIUS} 0`;
  if (to - from > 0.99999) { // an arc from a point to itself would not be drawn
    return `M0,${-RADIUS}${arc} 1 1 0,${RADIUS}${arc} 1 1 0,${-RADIUS}Z`;
  }
  return `M0,0L${point(from)}${arc} ${to - from > 0.5 ? 1 : 0} 1 ${point(to)}Z`;
}

/* One slice for each process, in the order of the pids, clockwise from the top.
   greatest: pids of the slices in the colour of costs, which are pulled out a little, so that
   they are told apart without the colour. onPoint(pid). */
export function pie(values, greatest, onPoint) {
  const total = values.reduce((sum, value) => sum + value, 0);
  const edge = RADIUS + PULLED + 2;
  const element = svg("svg", {
    class: "pie", viewBox: `${-edge} ${-edge} ${2 * edge} ${2 * edge}`, "aria-hidden": "true",
  });
  if (total === 0) element.append(svg("circle", { class: "empty", r: RADIUS }));
  let from = 0;
  const slices = total === 0 ? [] : values.map((value, pid) => {
    const to = from + value / total;
    const slice = svg("path", {
      class: greatest.includes(pid) ? "slice greatest" : "slice", "data-pid": pid,
      d: value > 0 ? slicePath(from, to) : null, // else its outline would be a line
      transform: greatest.includes(pid) && value < total
        ? `translate(${point((from + to) / 2, PULLED)})` : null,
      onpointerenter: () => onPoint(pid),
    });
    from = to;
    return slice;
  });
  element.append(...slices);
  return {
    element,
    mark: (pid) => slices.forEach((slice, each) => slice.classList.toggle("marked", each === pid)),
  };
}

/* The first process that a column stands for, and the one after the last. */
function columnsOf(count) {
  const columns = Math.min(count, WIDTH);
  const start = (column) => Math.ceil(column * count / columns);
  return Array.from({ length: columns }, (_, column) => [start(column), start(column + 1)]);
}

function rectangle(x, y, width, height) {
  return `M${x},${y}h${width}v${height}h${-width}z`;
}

/* Bars by pid, with a line at the average. Where a column stands for several processes, it shows
   the greatest of them. greatest: pids in the colour of costs. */
export function bars(values, greatest, average, onPoint) {
  const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
  const marked = new Set(greatest);
  const columns = columnsOf(values.length);
  const width = WIDTH / columns.length;
  const gap = width > 4 ? 1 : 0;
  const paths = { plain: "", greatest: "" };
  columns.forEach(([first, end], column) => {
    let top = first;
    for (let pid = first; pid < end; pid += 1) if (values[pid] > values[top]) top = pid;
    const height = HEIGHT * values[top] / most;
    paths[marked.has(top) ? "greatest" : "plain"] += rectangle(column * width, HEIGHT - height, width - gap, height);
  });
  const level = HEIGHT * (1 - average / most);
  const line = svg("line", { class: "mark", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const element = svg("svg", {
    class: "by-pid", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
    onpointermove: ({ clientX }) => {
      const { left, width: wide } = element.getBoundingClientRect();
      const pid = Math.floor((clientX - left) / wide * values.length);
      if (pid >= 0 && pid < values.length) onPoint(pid);
    },
  },
  svg("path", { class: "bars", d: paths.plain }), svg("path", { class: "bars greatest", d: paths.greatest }),
  svg("line", { class: "average", x1: 0, x2: WIDTH, y1: level, y2: level }), line);
  return {
    element,
    mark(pid) {
      const x = (pid + 0.5) * WIDTH / values.length;
      for (const [name, value] of Object.entries({ x1: x, x2: x, visibility: "visible" })) line.setAttribute(name, value);
    },
  };
}
