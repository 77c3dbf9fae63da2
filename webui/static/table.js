/* The view "Table": the nodes, sorted by any column. */

import { COLUMNS, cells, head, sorted, widths } from "./columns.js";
import { selection } from "./detail.js";
import { button, html } from "./dom.js";
import { count, integer, label, place, shortLabel } from "./format.js";
import { shortcut } from "./keys.js";
import { onPrint } from "./print.js";

const MOST_ROWS = 300; // that are shown at first
const MOST_PRINTED = 30; // rows on one page
const PAGE = 10; // rows

/** @param {HTMLElement} host @param {Context} context */
export function create(host, { store }) {
  const { state, update } = store;
  const table = html("table", {
    class: "nodes", role: "grid", tabindex: 0, "aria-label": "Nodes", onkeydown: onKey, onclick: onClick,
  }, widths());
  const more = html("p", { class: "more" });
  const summary = html("p", { class: "quiet summary", "aria-live": "polite" });
  host.replaceChildren(html("div", { class: "rows" }, table, more), summary);
  /** @type {Model} */
  let model = null;
  let visible = false;
  let parts = []; // the rows, in their order
  let cursor = null; // the node at which the keyboard is
  let isWhole = false; // whether the reader asked for all rows
  let isPrinting = false;

  function listed() {
    const found = state.search === "" ? null : model.found ?? null;
    const all = model.nodes.map((part, node) => ({
      node, part, time: model.score(node, "time"), loss: model.score(node, "loss"), name: shortLabel(part),
      under: part.under, title: `${label(part)}, ${place(part)}`,
    }));
    return found === null ? all : all.filter(({ node }) => found.has(node));
  }

  function whole() {
    return { time: model.score(model.root, "time"), loss: model.score(model.root, "loss") };
  }

  // -- rows --------------------------------------------------------------------------------

  function row(part, position) {
    const { node } = part;
    const isSelected = state.edge === null && node === selection(model, state).node;
    return html("tr", {
      id: `row-${node}`, "data-node": node, "aria-rowindex": position + 2,
      "aria-selected": String(isSelected), class: node === cursor ? "cursor" : null,
    }, ...cells(part, whole()));
  }

  /* What a range of supersteps lost, or took, for what was before it. */
  function before() {
    const part = model.times.before;
    if (part === null) return [];
    const empty = Object.keys(COLUMNS).slice(1).map((name) => html("td", { class: `of-${name}` },
      ...(name in part ? COLUMNS[name].cell(part, whole()) : [])));
    return [html("tfoot", {}, html("tr", { class: "before" },
      html("th", { scope: "row", class: "of-name" }, "before these supersteps"), ...empty))];
  }

  function draw() {
    const most = isPrinting ? MOST_PRINTED : isWhole ? parts.length : MOST_ROWS;
    for (const old of table.querySelectorAll("tbody, tfoot")) old.remove();
    table.append(...before(), html("tbody", {}, ...parts.slice(0, most).map(row)));
    table.setAttribute("aria-rowcount", parts.length + 1);
    table.setAttribute("aria-activedescendant", `row-${cursor}`);
    more.hidden = isPrinting || parts.length <= most;
    more.replaceChildren(button(`Show all ${integer(parts.length)} rows`, () => {
      isWhole = true;
      draw();
    }, { class: "plain-button" }));
  }

  function showHead() {
    const focused = document.activeElement?.closest("th")?.className ?? null;
    table.querySelector("thead")?.remove();
    table.querySelector("colgroup").after(head(state.sort, (sort) => update({ sort })));
    if (focused !== null) table.querySelector(`thead .${focused} button`)?.focus();
  }

  // -- keys --------------------------------------------------------------------------------

  function move(step) {
    if (parts.length === 0) return;
    const at = parts.findIndex(({ node }) => node === cursor);
    const next = Math.min(parts.length - 1, Math.max(0, at < 0 ? 0 : at + step));
    cursor = parts[next].node;
    drawAt(next);
    table.focus({ preventScroll: true });
  }

  /* Draws the rows so that one of them is seen. */
  function drawAt(position) {
    isWhole ||= position >= MOST_ROWS;
    draw();
    table.querySelector(`[aria-rowindex="${position + 2}"]`)?.scrollIntoView({ block: "nearest" });
  }

  function select(node) {
    if (node !== null) update({ node: model.nodes[node].id, edge: null });
  }

  function onKey(event) {
    if (event.target !== table || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    select(cursor);
  }

  function onClick(event) {
    const found = event.target.closest("[data-node]");
    if (found === null) return;
    cursor = Number(found.dataset.node);
    select(cursor);
  }

  const here = { section: "Table", view: "table" };
  shortcut(["ArrowDown", "ArrowUp"], "Go to the next or previous node; Enter selects it", (event) =>
    move(event.key === "ArrowDown" ? 1 : -1), here);
  shortcut(["PageDown", "PageUp"], "Go down or up by ten nodes", (event) =>
    move(event.key === "PageDown" ? PAGE : -PAGE), here);
  shortcut(["Home", "End"], "Go to the first or the last node", (event) =>
    move(event.key === "Home" ? -parts.length : parts.length), here);

  // -- the whole ---------------------------------------------------------------------------

  function showSummary() {
    const all = model.nodes.length;
    summary.textContent = isPrinting && parts.length > MOST_PRINTED ? `The first ${MOST_PRINTED} of ${count(all, "node")}.`
      : parts.length === all ? ""
      : `${parts.length} of ${count(all, "node")} contain what is searched for.`;
  }

  onPrint((isNow) => {
    isPrinting = isNow;
    if (!visible) return;
    draw();
    showSummary();
  });

  /** @type {View["show"]} */
  function show(next, _, changed) {
    model = next;
    visible = true;
    const reordered = changed === null || ["model", "sort", "search"].some((name) => changed.has(name));
    if (reordered) {
      parts = sorted(listed(), state.sort);
      showHead();
      showSummary();
    }
    const { node } = selection(model, state);
    if (changed === null || changed.has("model") || changed.has("node") || !parts.some((part) => part.node === cursor)) {
      cursor = node;
    }
    const position = parts.findIndex((part) => part.node === cursor);
    if (position >= 0 && (reordered || changed.has("node"))) drawAt(position);
    else draw();
  }

  return {
    show,
    hide() {
      visible = false;
    },
  };
}
