/* The view "Table": the nodes, sorted by any column. */

import { COLUMNS, cells, head, sorted } from "./columns.js";
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
    class: "nodes", role: "grid", tabindex: 0, "aria-label": "Nodes", onclick: onClick,
  });
  const more = html("p", { class: "more" });
  const summary = html("p", { class: "quiet summary", "aria-live": "polite" });
  host.replaceChildren(html("div", { class: "rows" }, table, more), summary);
  /** @type {Model} */
  let model = null;
  let visible = false;
  let parts = []; // the rows, in their order
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

  const selected = () => selection(model, state).node;

  // -- rows --------------------------------------------------------------------------------

  function row(part, position) {
    const { node } = part;
    return html("tr", {
      id: `row-${node}`, "data-node": node, "aria-rowindex": position + 2,
      "aria-selected": state.edge === null && node === selected(),
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
    table.setAttribute("aria-activedescendant", `row-${selected()}`);
    more.hidden = isPrinting || parts.length <= most;
    more.replaceChildren(button(`Show all ${integer(parts.length)} rows`, () => {
      isWhole = true;
      draw();
    }, { class: "plain-button" }));
  }

  function showHead() {
    const focused = document.activeElement?.closest("th")?.className ?? null;
    table.querySelector("thead")?.remove();
    table.prepend(head(state.sort, (sort) => update({ sort })));
    if (focused !== null) table.querySelector(`thead .${focused} button`)?.focus();
  }

  // -- keys --------------------------------------------------------------------------------

  function move(step) {
    if (parts.length === 0) return;
    const at = parts.findIndex(({ node }) => node === selected());
    select(parts[Math.min(parts.length - 1, Math.max(0, at < 0 ? 0 : at + step))].node, { push: false });
    table.focus({ preventScroll: true });
  }

  /* Draws the rows so that one of them is seen. */
  function drawAt(position) {
    isWhole ||= position >= MOST_ROWS;
    draw();
    table.querySelector(`[aria-rowindex="${position + 2}"]`)?.scrollIntoView({ block: "nearest" });
  }

  function select(node, options = {}) {
    update({ node: model.nodes[node].id, edge: null }, options);
  }

  function onClick(event) {
    const found = event.target.closest("[data-node]");
    if (found !== null) select(Number(found.dataset.node));
  }

  const here = { section: "Table", view: "table" };
  shortcut(["ArrowDown", "ArrowUp"], "Select the next or the previous node", (event) =>
    move(event.key === "ArrowDown" ? 1 : -1), here);
  shortcut(["PageDown", "PageUp"], "The same by ten nodes", (event) =>
    move(event.key === "PageDown" ? PAGE : -PAGE), here);
  shortcut(["Home", "End"], "Select the first or the last node", (event) =>
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
    const position = parts.findIndex(({ node }) => node === selected());
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
