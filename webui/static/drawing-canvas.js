/* The graph on a canvas, for graphs of many nodes: one element, drawn anew for each change. */

import {
  INSET, LETTER_PX, NAME_Y, RADIUS, UNDER_Y, VALUE_Y, barRectangles, farLetters, shortName, squeezed,
} from "./box.js";
import { html } from "./dom.js";
import { colour } from "./theme.js";

const FAR = 0.62; // below this scale only names are shown, in larger letters
const NO_NAMES = 0.16; // below this scale names could not be read, either
const GRIP = 7; // distance in pixels within which a line is hit
const FADED = 0.25;

/* A drawing in `host`, like createSvgDrawing. The focused node is read aloud by a live region. */
export function createCanvasDrawing(host, { nameOf, underOf, labelOf }) {
  const canvas = html("canvas", {
    class: "drawing", tabindex: 0, role: "application", "aria-label": "Call graph: arrow keys "
      + "move from node to node, Enter selects one.",
  });
  const spoken = html("p", { class: "unseen", "aria-live": "polite" });
  host.append(canvas, spoken);
  const context = canvas.getContext("2d");
  let boxes = [];
  let lines = [];
  let isDense = false;
  let look = null;
  let marks = { selected: null, line: null, lit: null, litLines: null, fading: false, found: null };
  let view = { x: 0, y: 0, scale: 1 };
  let focusedNode = null;
  let waiting = 0;

  function load(scene) {
    boxes = [...scene.boxes.values()].map((box) => {
      const name = shortName(nameOf(box.node));
      const under = shortName(underOf(box.node));
      const below = scene.below.get(box.node) ?? 0;
      return { ...box, name, under, below, narrow: squeezed(under, box.w, { isName: false }),
        squeezed: squeezed(name, box.w, { hasBadge: below > 0 }), far: farLetters(name, box.w) };
    });
    isDense = scene.isDense;
    lines = scene.lines.map((line) => ({ ...line, shape: new Path2D(line.path) }));
    look = null;
  }

  /* Draws before the next frame, however often it is asked. */
  function soon() {
    if (waiting) return;
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      draw();
    });
  }

  function resize() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(host.clientWidth * ratio);
    canvas.height = Math.round(host.clientHeight * ratio);
    soon();
  }

  function colours() {
    const bins = [0, 1, 2, 3, 4];
    return {
      bins: bins.map((bin) => colour(`--bin-${bin}`)),
      texts: bins.map((bin) => colour(`--on-bin-${bin}`)),
      edge: colour("--edge"), critical: colour("--critical"), chosen: colour("--chosen"),
      outline: colour("--outline"), family: getComputedStyle(document.body).fontFamily,
    };
  }

  function draw() {
    if (look === null) return;
    const ratio = window.devicePixelRatio || 1;
    const set = colours();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const { x, y, scale } = view;
    context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * x, ratio * y);
    const seen = { left: -x / scale, top: -y / scale,
      right: (canvas.width / ratio - x) / scale, bottom: (canvas.height / ratio - y) / scale };
    lines.forEach((line, position) => drawLine(line, position, set));
    for (const box of boxes) {
      const inside = box.x < seen.right && box.x + box.w > seen.left
        && box.y < seen.bottom && box.y + box.h > seen.top;
      if (inside) drawBox(box, set);
    }
  }

  function drawLine(line, position, set) {
    const { width, critical } = look.lines[position];
    const isLit = marks.litLines !== null && marks.litLines.has(position);
    const isMarked = position === marks.line || isLit || critical;
    context.globalAlpha = (marks.fading && !isLit) || (isDense && !isMarked) ? FADED : 1;
    context.strokeStyle = position === marks.line || isLit ? set.chosen
      : critical ? set.critical : set.edge;
    context.lineWidth = Math.max(width, 0.6 / view.scale);
    context.setLineDash(line.edge === null ? [4, 3] : []);
    context.stroke(line.shape);
  }

  function drawBox(box, set) {
    const { bin, text, bars, critical, apart } = look.nodes.get(box.node);
    const isLit = marks.lit !== null && marks.lit.has(box.node);
    const isFound = marks.found === null || marks.found.has(box.node);
    const isChosen = box.node === marks.selected || box.node === focusedNode;
    context.globalAlpha = (marks.fading && !isLit) || !isFound ? FADED : 1;
    context.setLineDash(apart ? [4, 3] : []);
    context.beginPath();
    context.roundRect(box.x, box.y, box.w, box.h, RADIUS);
    context.fillStyle = set.bins[bin];
    context.fill();
    context.strokeStyle = isChosen || (isLit && marks.fading) ? set.chosen
      : critical ? set.critical : set.outline;
    context.lineWidth = isChosen ? 2.5 / Math.min(1, view.scale) : critical ? 2 : 1;
    context.stroke();
    context.fillStyle = set.texts[bin];
    if (view.scale < NO_NAMES) return;
    if (view.scale < FAR) drawFar(box, set);
    else drawNear(box, text, bars, set);
  }

  function drawFar({ x, y, w, h, name, far }, set) {
    context.font = `600 ${far}px ${set.family}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(name, x + w / 2, y + h / 2);
  }

  function drawNear(box, text, bars, set) {
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.font = `600 ${LETTER_PX}px ${set.family}`;
    context.fillText(box.name, box.x + INSET, box.y + NAME_Y, box.squeezed ?? undefined);
    context.font = `${LETTER_PX}px ${set.family}`;
    context.fillText(text, box.x + INSET, box.y + VALUE_Y);
    context.fillText(box.under, box.x + INSET, box.y + UNDER_Y, box.narrow ?? undefined);
    context.textAlign = "right";
    if (box.below) context.fillText(`+${box.below}`, box.x + box.w - INSET, box.y + NAME_Y);
    context.globalAlpha *= 0.5;
    for (const rectangle of barRectangles(box, bars)) context.fillRect(...rectangle);
    context.globalAlpha = 1;
  }

  function paint(newLook) {
    look = newLook;
    draw();
  }

  function mark(newMarks) {
    marks = newMarks;
    soon();
  }

  function transform(newView) {
    view = { ...newView };
    soon();
  }

  function hit(event) {
    const { left, top } = canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - left, event.clientY - top];
    const [x, y] = [(px - view.x) / view.scale, (py - view.y) / view.scale];
    const box = boxes.find((each) =>
      x >= each.x && x <= each.x + each.w && y >= each.y && y <= each.y + each.h);
    if (box) return { node: box.node, line: null };
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.setLineDash([]);
    context.lineWidth = 2 * GRIP / view.scale;
    const line = lines.findIndex(({ shape }) => context.isPointInStroke(shape, x, y));
    return { node: null, line: line === -1 ? null : line };
  }

  function setReachable(node) {
    focusedNode = document.activeElement === canvas ? node : null;
  }

  function focus(node) {
    canvas.focus({ preventScroll: true });
    focusedNode = node;
    const { text, critical } = look.nodes.get(node);
    spoken.textContent = labelOf(node, text, critical);
    soon();
  }

  canvas.addEventListener("blur", () => {
    focusedNode = null;
    soon();
  });
  return {
    element: canvas, load, paint, mark, transform, setReachable, hit, focus, resize,
    focused: () => (document.activeElement === canvas ? focusedNode : null),
    remove: () => {
      cancelAnimationFrame(waiting);
      canvas.remove();
      spoken.remove();
    },
  };
}
