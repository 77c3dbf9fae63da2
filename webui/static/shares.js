/* The charts of the panel of processes: a pie for a few, sorted bars and a strip by pid for
   many. A chart is { element, mark(pid) }; mark shows which process is meant. */

import { svg } from "./dom.js";

const RADIUS = 56;
const PULLED = 4; // distance by which the greatest slice is pulled out
const WIDTH = 260; // columns of the bars and the strip, one a pixel in a panel of usual width
const HEIGHT = 72;
const STRIP = 14;
const LEVELS = 8; // of the strip

/* Pids by falling value; of equals the lowest first. */
export function ranked(values) {
  return values.map((_, pid) => pid).sort((a, b) => values[b] - values[a] || a - b);
}

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

/* The first and the last but one of the items that a column stands for. */
function columnsOf(count) {
  const columns = Math.min(count, WIDTH);
  const start = (column) => Math.ceil(column * count / columns);
  return Array.from({ length: columns }, (_, column) => [start(column), start(column + 1)]);
}

function rectangle(x, y, width, height) {
  return `M${x},${y}h${width}v${height}h${-width}z`;
}

/* A chart that is as wide as its panel, with an item under the pointer and a mark on one. */
function wide(name, height, count, onItem, ...content) {
  const line = svg("line", { class: "mark", y1: 0, y2: height, visibility: "hidden" });
  const element = svg("svg", {
    class: name, viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none",
    "aria-hidden": "true",
    onpointermove: (event) => {
      const { left, width } = element.getBoundingClientRect();
      const item = Math.floor((event.clientX - left) / width * count);
      if (item >= 0 && item < count) onItem(item);
    },
  }, ...content, line);
  const mark = (item) => {
    const x = (item + 0.5) * WIDTH / count;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    line.setAttribute("visibility", item === null ? "hidden" : "visible");
  };
  return { element, mark };
}

/* Bars by falling value, with a line at the average. Where a column stands for several
   processes, it shows the greatest of them. order: as ranked gives it; greatest: how many of
   the first are in the colour of costs. */
export function bars(values, order, greatest, average, onPoint) {
  const most = values[order[0]] || 1;
  const columns = columnsOf(values.length);
  const width = WIDTH / columns.length;
  const gap = width > 4 ? 1 : 0;
  const path = columns.map(([first], column) => {
    const height = HEIGHT * values[order[first]] / most;
    return rectangle(column * width, HEIGHT - height, width - gap, height);
  });
  const marked = columns.filter(([first]) => first < greatest).length;
  const level = HEIGHT * (1 - average / most);
  const chart = wide("sorted", HEIGHT, values.length, (rank) => onPoint(order[rank]),
    svg("path", { class: "bars", d: path.slice(marked).join("") }),
    svg("path", { class: "bars greatest", d: path.slice(0, marked).join("") }),
    svg("line", { class: "average", x1: 0, x2: WIDTH, y1: level, y2: level }));
  const ranks = new Map(order.map((pid, rank) => [pid, rank]));
  return { element: chart.element, mark: (pid) => chart.mark(ranks.get(pid) ?? null) };
}

/* A strip by pid, darker where the value is greater. A column that stands for several
   processes shows the greatest of them. */
export function strip(values, most, onPoint) {
  const columns = columnsOf(values.length);
  const width = WIDTH / columns.length;
  const levels = Array.from({ length: LEVELS }, () => []);
  columns.forEach(([first, last], column) => {
    let value = 0;
    for (let pid = first; pid < last; pid += 1) value = Math.max(value, values[pid]);
    const level = Math.min(LEVELS - 1, Math.floor(LEVELS * value / (most || 1)));
    levels[level].push(rectangle(column * width, 0, width, STRIP));
  });
  return wide("strip", STRIP, values.length, onPoint, ...levels.map((paths, level) =>
    svg("path", { d: paths.join(""), "fill-opacity": (level + 0.5) / LEVELS })));
}
