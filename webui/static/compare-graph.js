/* The call graph of the run after, shaded by what changed: the darker green, the better, and
   the darker brown, the worse. A mark and a percentage say the same in each box. */

import { LESS, MORE, change, differs, judged, relativeText, valueText } from "./changes.js";
import { LETTER_PX } from "./box.js";
import { html } from "./dom.js";
import { createSvgDrawing } from "./drawing-svg.js";
import { neighbour } from "./graph-keys.js";
import { makeScene, namesOf } from "./scene.js";
import { PADDING, createViewport } from "./viewport.js";
import { visible } from "./visible.js";

const SMALLEST_LETTERS = 11; // pixels, below which the graph opens on its greatest change
const STEPS = 3; // shades for the better, and as many for the worse
const ARROWS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);

/* The shade of a node: "0", or b1 to b3 for better and w1 to w3 for worse, by the square root
   of its change as a part of the whole run's value, the greater of before and after. */
export function shadeOf(node, whole, quantity) {
  const change_ = Math.abs(change(node, quantity));
  const most = quantity.unit === "%" ? 1
    : Math.max(whole.before?.[quantity.name] ?? 0, whole.after?.[quantity.name] ?? 0);
  const step = most > 0 ? Math.min(STEPS, Math.ceil(STEPS * Math.sqrt(change_ / most) - 0.1)) : 0;
  if (step <= 0 || !change_) return "0";
  return `${judged(node, quantity) > 0 ? "b" : "w"}${step}`;
}

/* The text in a box: the value after, and how it changed. */
export function changeText(node, quantity) {
  const text = valueText(node.after[quantity.name], quantity);
  if (node.before === null) return `${text} new`;
  if (!differs(node, quantity)) return text;
  const mark = change(node, quantity) > 0 ? MORE : LESS;
  return `${mark} ${relativeText(node, quantity) || text}`;
}

function legend() {
  const swatch = (bin) => html("span", { class: "change-swatch", "data-bin": bin });
  return html("p", { class: "change-legend" }, "better",
    ...["b3", "b2", "b1", "0", "w1", "w2", "w3"].map(swatch), "worse");
}

/* A graph in an element; select(id) is called with the node that the reader chooses.
   Returns { fill(model, answer, quantity, chosen), choose(id), resize() }. */
export function createChangeGraph(host, context, select) {
  const stage = html("div", { class: "stage" });
  const note = html("p", { class: "note" });
  host.replaceChildren(stage, note, legend());
  /** @type {Model} */
  let model = null;
  let scene = null;
  let asked = 0;
  const drawing = createSvgDrawing(stage, namesOf(() => model));
  const viewport = createViewport(stage, {
    onChange: (view) => drawing.transform(view), onRest() {},
  });

  async function fill(newModel, { nodes }, quantity, chosen) {
    asked += 1;
    const number = asked;
    const found = visible(newModel, { ...context.store.state.filters, unfolded: [] }, new Set());
    const made = await makeScene(newModel, found, viewport.measure(), PADDING, context);
    if (number !== asked) return;
    [model, scene] = [newModel, made];
    drawing.load(scene);
    drawing.paint(look(nodes, quantity));
    viewport.load(scene);
    choose(chosen);
    open(nodes, quantity);
    const gone = nodes.filter(({ status }) => status === "vanished").length;
    note.textContent = gone ? `${gone} vanished ${gone === 1 ? "node is" : "nodes are"} in the table only.` : "";
    stage.dataset.nodes = found.nodes.length; // says that the graph is drawn
  }

  function look(nodes, quantity) {
    const byId = new Map(nodes.filter(({ after }) => after !== null)
      .map((node) => [node.after.id, node]));
    const plain = { bin: "0", text: "", bars: [], critical: false, apart: false };
    return {
      nodes: new Map([...scene.boxes.keys()].map((position) => {
        const node = byId.get(model.nodes[position].id);
        if (!node) return [position, plain];
        const bin = shadeOf(node, nodes[0], quantity);
        return [position, { ...plain, bin, text: changeText(node, quantity) }];
      })),
      lines: scene.lines.map(() => ({ width: 1, critical: false })),
    };
  }

  /* Shows all of the graph or, where its letters would be too small, its greatest change. */
  function open(nodes, quantity) {
    if (viewport.fittingScale() * LETTER_PX >= SMALLEST_LETTERS) return viewport.fit();
    const [greatest] = nodes.filter(({ after, parent }) => after !== null && parent !== null)
      .sort((a, b) => Math.abs(change(b, quantity)) - Math.abs(change(a, quantity)));
    const box = scene.boxes.get(model.indexOf(greatest?.after.id)) ?? scene.boxes.values().next().value;
    return viewport.open(box, box, SMALLEST_LETTERS / LETTER_PX);
  }

  /* Marks the selected node. */
  function choose(id) {
    if (scene === null) return;
    const selected = model.indexOf(id);
    drawing.mark({
      selected, line: null, lit: null, litLines: null, fading: false, found: null,
    });
    drawing.setReachable(scene.boxes.has(selected) ? selected : scene.boxes.keys().next().value);
  }

  function onKey(event) {
    const focused = drawing.focused();
    if (focused === null) return;
    if (event.key === "Enter" || event.key === " ") select(model.nodes[focused].id);
    else if (ARROWS.has(event.key)) walk(neighbour(scene.boxes, focused, event.key));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function walk(node) {
    if (node === null) return;
    drawing.setReachable(node);
    drawing.focus(node);
    viewport.reveal(scene.boxes.get(node));
  }

  stage.addEventListener("keydown", onKey);
  stage.addEventListener("click", (event) => {
    const { node } = drawing.hit(event);
    if (node !== null) select(model.nodes[node].id);
  });
  new ResizeObserver(() => {
    if (scene === null || host.hidden) return;
    viewport.measure();
    if (viewport.fitted) viewport.fit();
  }).observe(stage);

  return { fill, choose };
}
