/* The table of the view "Compare": each node with what it cost before and after. A change for
   the better and one for the worse have different colours, and ▲ or ▼ says which is more. */

import { LESS, MORE, change, differs, judged, ranked, relativeText, valueText } from "./changes.js";
import { button, html } from "./dom.js";

const STATUS_TITLES = {
  moved: "It was in another line, function or file before",
  new: "It was not there before", vanished: "It is not there any more",
};

/* The cell of a quantity: after with its mark, and below it before with the change. */
function cell(node, quantity, { chosen, greatest }) {
  const { name, title } = quantity;
  const text = (side) => valueText(side[name], quantity);
  const { before, after } = node;
  const kind = chosen ? "chosen" : "";
  if (before === null || after === null) {
    return html("td", { class: `${kind} only` },
      html("span", { class: "after" }, text(after ?? before)), bar(node, quantity, chosen, greatest));
  }
  if (!differs(node, quantity)) return html("td", { class: `${kind} same` }, text(after));
  const more = change(node, quantity) > 0;
  const share = relativeText(node, quantity);
  return html("td", {
    class: `${kind} ${judged(node, quantity) > 0 ? "better" : "worse"}`,
    title: `${title}: ${text(before)} before, ${text(after)} after`,
  },
  html("span", { class: "after" },
    html("span", { class: "mark", role: "img", "aria-label": more ? "more" : "less" },
      more ? MORE : LESS), ` ${text(after)}`),
  html("span", { class: "before" }, text(before),
    share ? html("span", { class: "share" }, share) : null),
  bar(node, quantity, chosen, greatest));
}

/* The size of a change beside the greatest one, in the column by which rows are sorted. */
function bar(node, quantity, chosen, greatest) {
  const share = Math.abs(change(node, quantity)) / greatest;
  if (!chosen || !share) return null;
  const made = html("span", {
    class: `change-bar ${judged(node, quantity) > 0 ? "better" : "worse"}`, "aria-hidden": "true",
  });
  made.style.width = `${Math.max(2, 100 * share)}%`;
  return made;
}

function nameCell(node, select) {
  const { status, parent, after } = node;
  const inner = parent !== null && parent !== 0; // below the row of its function
  const text = inner ? node.short : node.label;
  const tag = status === "same" ? null
    : html("span", { class: `status ${status}`, title: STATUS_TITLES[status] }, status);
  const name = after === null ? html("span", { class: "gone" }, text)
    : button(text, () => select(after.id), { class: "node-name", title: after.file });
  return html("th", { scope: "row", class: inner ? "inner" : null }, name, " ", tag);
}

/* A table in an element. Returns { fill(answer, quantity), choose(node) }; select(id) is
   called with the node that the reader chooses. */
export function createComparisonTable(host, select) {
  function fill({ nodes, quantities }, quantity, chosen) {
    const order = ranked(nodes, quantity);
    const greatest = Math.max(...order.map((position) =>
      Math.abs(change(nodes[position], quantity))), Number.MIN_VALUE);
    const rows = order.map((position) => row(nodes[position], position === 0));
    host.replaceChildren(html("table", { class: "changes" }, html("thead", {}, heads()),
      html("tbody", {}, ...rows)));
    choose(chosen);

    function heads() {
      return html("tr", {}, html("th", { scope: "col" }, "function or cost centre"),
        ...quantities.map(({ name, title }) => html("th",
          { scope: "col", class: name === quantity.name ? "chosen" : null }, title)));
    }

    function row(node, isWhole) {
      return html("tr", { "data-node": node.after?.id, class: isWhole ? "whole" : node.status },
        nameCell(isWhole ? { ...node, label: "whole run" } : node, select),
        ...quantities.map((each) => cell(node, each,
          { chosen: each.name === quantity.name, greatest })));
    }
  }

  /* Marks the row of the selected node. */
  function choose(id) {
    host.dataset.node = id ?? "";
    for (const row of host.querySelectorAll("tr[data-node]")) {
      row.classList.toggle("selected", row.dataset.node === id);
    }
  }

  return { fill, choose };
}
