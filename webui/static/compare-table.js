/* The table of the view "Compare": each node with what it cost before and after. A change for
   the better and one for the worse have different colours, and ▲ or ▼ says which is more. */

import { change, judged, ranked } from "./changes.js";
import { button, html } from "./dom.js";
import { bytes, integer, seconds } from "./format.js";

const MOST_ROWS = 300;
const TEXTS = {
  s: seconds, B: bytes, "": integer, "%": (value) => `${(100 * value).toFixed(0)}%`,
};
/* Quantities that repeat exactly: their smallest change counts. */
const EXACT = new Set(["h", "supersteps"]);
const STATUS_TITLES = {
  moved: "It was in another line, function or file before",
  new: "It was not there before", vanished: "It is not there any more",
};

function relative(before, difference) {
  if (!before) return "";
  const percent = 100 * difference / before;
  const digits = Math.abs(percent) >= 10 ? percent.toFixed(0) : Number(percent.toPrecision(2));
  return `${percent > 0 ? "+" : "−"}${String(digits).replace("-", "")}%`;
}

/* The cell of a quantity: after with its mark, and below it before with the change. */
function cell(node, quantity, { chosen, greatest }) {
  const { name, unit, title } = quantity;
  const text = TEXTS[unit];
  const { before, after } = node;
  const kind = chosen ? "chosen" : "";
  if (before === null || after === null) {
    return html("td", { class: `${kind} only` }, html("span", { class: "after" },
      text((after ?? before)[name])), bar(node, quantity, chosen, greatest));
  }
  const difference = change(node, quantity);
  const seen = text(before[name]) !== text(after[name]) || (difference && EXACT.has(name));
  if (!seen) return html("td", { class: `${kind} same` }, text(after[name]));
  const more = difference > 0;
  return html("td", {
    class: `${kind} ${judged(node, quantity) > 0 ? "better" : "worse"}`,
    title: `${title}: ${text(before[name])} before, ${text(after[name])} after`,
  },
  html("span", { class: "after" },
    html("span", { class: "mark", role: "img", "aria-label": more ? "more" : "less" },
      more ? "▲" : "▼"), ` ${text(after[name])}`),
  html("span", { class: "before" }, `${text(before[name])}`,
    unit === "%" ? null : html("span", { class: "share" }, relative(before[name], difference))),
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
  const { status, parent, after, file } = node;
  const inner = parent !== null && parent !== 0; // below the row of its function
  const text = inner ? node.short : node.label;
  const tag = status === "same" ? null
    : html("span", { class: `status ${status}`, title: STATUS_TITLES[status] }, status);
  const name = after === null ? html("span", { class: "gone" }, text)
    : button(text, () => select(after.id), { class: "node-name", title: file });
  return html("th", { scope: "row", class: inner ? "inner" : null }, name, " ", tag);
}

/* A table in an element. Returns { fill(answer, quantity), choose(node) }; select(id) is
   called with the node that the reader chooses. */
export function createComparisonTable(host, select) {
  let all = false;

  function fill({ nodes, quantities }, quantity, chosen) {
    const order = ranked(nodes, quantity);
    const shown = all ? order : order.slice(0, MOST_ROWS);
    const greatest = Math.max(...order.map((position) =>
      Math.abs(change(nodes[position], quantity))), Number.MIN_VALUE);
    const rows = shown.map((position) => row(nodes[position], position === 0));
    const more = html("p", { class: "more" }, button(`Show all ${integer(order.length)} rows`, () => {
      all = true;
      fill({ nodes, quantities }, quantity, host.dataset.node);
    }, { class: "plain-button" }));
    host.replaceChildren(html("table", { class: "changes" }, html("thead", {}, heads()),
      html("tbody", {}, ...rows)), ...(shown.length < order.length ? [more] : []));
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
