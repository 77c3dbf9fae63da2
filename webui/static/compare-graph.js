/* The call graph of the run after, shaded by what changed: the darker green, the better, and
   the darker brown, the worse. A mark and a percentage say the same in each box. */

import { LESS, MORE, change, differs, judged, relativeText, valueText } from "./changes.js";
import { html } from "./dom.js";
import { label } from "./format.js";
import { create as createGraph } from "./graph.js";

const STEPS = 3; // shades for the better, and as many for the worse

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

/* A graph in an element. Returns { fill(model, answer, quantity), mark(model), hide() }. */
export function createChangeGraph(host, context) {
  const { state } = context.store;
  let shown = null; // the answer and the quantity
  const graphHost = html("div", { class: "view graph" });
  host.replaceChildren(graphHost, legend());
  const byNode = () => new Map(shown.nodes.filter(({ after }) => after !== null).map((node) => [node.after.id, node]));

  /* The look of the nodes and lines of a scene. */
  function look(model, scene) {
    const known = byNode();
    const plain = { bin: "0", text: "", bars: [], critical: false, apart: false };
    const nodes = new Map([...scene.boxes.keys()].map((position) => {
      const node = known.get(model.nodes[position]?.id);
      return [position, node === undefined ? plain : {
        ...plain, bin: shadeOf(node, shown.nodes[0], shown.quantity), text: changeText(node, shown.quantity),
      }];
    }));
    return { nodes, lines: scene.lines.map(() => ({ width: 1, critical: false })) };
  }

  function opening(model) {
    const [greatest] = shown.nodes.filter(({ after, parent }) => after !== null && parent !== null)
      .sort((a, b) => Math.abs(change(b, shown.quantity)) - Math.abs(change(a, shown.quantity)));
    return model.indexOf(greatest?.after.id);
  }

  function note() {
    const gone = shown.nodes.filter(({ status }) => status === "vanished").length;
    return gone ? `${gone} vanished ${gone === 1 ? "node is" : "nodes are"} in the table only.` : "";
  }

  const texts = {
    nodeText: (model, node) => [label(model.nodes[node]), changeText(byNode().get(model.nodes[node].id), shown.quantity)],
    lineText: (model, { from, to }) => [`${label(model.nodes[from])} → ${label(model.nodes[to])}`],
  };
  const graph = createGraph(graphHost, { ...context, texts, changes: { view: "compare", look, opening, note } });

  return {
    fill(model, { nodes }, quantity) {
      shown = { nodes, quantity };
      graph.show(model, state, null);
    },
    mark: (model) => graph.show(model, state, new Set(["node"])),
    hide: () => graph.hide(),
  };
}
