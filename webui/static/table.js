/* The view "Table": all nodes, sorted by any column. Only the rows that are seen are elements. */

import { COLUMNS, cells, head, sorted, widths } from "./columns.js";
import { selection } from "./detail.js";
import { html } from "./dom.js";
import { count, label, place, shortLabel } from "./format.js";
import { shortcut } from "./keys.js";
import { onPrint } from "./print.js";

const ROW = 40; // height in pixels, as in table.css
const MOST_PRINTED = 30; // rows on one page
const AHEAD = 8; // rows that are drawn above and below those that are seen

/** @param {HTMLElement} host @param {Context} context */
export function create(host, { store }) {
  const { state, update } = store;
  const table = html("table", {
    class: "nodes", role: "grid", tabindex: 0, "aria-label": "Nodes", onkeydown: onKey, onclick: onClick,
  }, widths());
  const scroller = html("div", { class: "rows", onscroll: () => requestDraw() }, table);
  const summary = html("p", { class: "quiet summary", "aria-live": "polite" });
  host.replaceChildren(scroller, summary);
  /** @type {Model} */
  let model = null;
  let visible = false;
  let parts = []; // the rows, in their order
  let cursor = null; // the node at which the keyboard is
  let frame = false;
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

  function spacer(rows) {
    const filler = html("tr", { class: "spacer", "aria-hidden": "true" });
    filler.style.height = `${rows * ROW}px`;
    return filler;
  }

  function draw() {
    const first = isPrinting ? 0 : Math.max(0, Math.floor(scroller.scrollTop / ROW) - AHEAD);
    const seen = isPrinting ? MOST_PRINTED : Math.ceil(scroller.clientHeight / ROW) + 2 * AHEAD;
    const last = Math.min(parts.length, first + seen);
    table.querySelector("tbody")?.remove();
    table.querySelector("tfoot")?.remove();
    table.append(...before(), html("tbody", {}, spacer(first),
      ...parts.slice(first, last).map((part, i) => row(part, first + i)),
      spacer(isPrinting ? 0 : parts.length - last)));
    table.setAttribute("aria-rowcount", parts.length + 1);
    const position = parts.findIndex(({ node }) => node === cursor);
    if (position >= first && position < last) table.setAttribute("aria-activedescendant", `row-${cursor}`);
    else table.removeAttribute("aria-activedescendant");
  }

  function requestDraw() {
    if (frame) return;
    frame = true;
    requestAnimationFrame(() => {
      frame = false;
      if (visible && model !== null) draw();
    });
  }

  function showHead() {
    const focused = document.activeElement?.closest("th")?.className ?? null;
    table.querySelector("thead")?.remove();
    table.querySelector("colgroup").after(head(state.sort, (sort) => update({ sort })));
    if (focused !== null) table.querySelector(`thead .${focused} button`)?.focus();
  }

  /* Scrolls so that a row is seen below the head. */
  function reveal(position) {
    const top = position * ROW;
    const room = scroller.clientHeight - table.tHead.offsetHeight - ROW;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
  }

  // -- keys --------------------------------------------------------------------------------

  function move(step) {
    if (parts.length === 0) return;
    const at = parts.findIndex(({ node }) => node === cursor);
    const next = Math.min(parts.length - 1, Math.max(0, at < 0 ? 0 : at + step));
    cursor = parts[next].node;
    reveal(next);
    draw();
    table.focus({ preventScroll: true });
  }

  function page() {
    return Math.max(1, Math.floor(scroller.clientHeight / ROW) - 2);
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
  shortcut(["PageDown", "PageUp"], "Go down or up by a page", (event) =>
    move(event.key === "PageDown" ? page() : -page()), here);
  shortcut(["Home", "End"], "Go to the first or the last node", (event) =>
    move(event.key === "Home" ? -parts.length : parts.length), here);

  // -- the whole ---------------------------------------------------------------------------

  function showSummary() {
    const all = model.nodes.length;
    summary.textContent = isPrinting && parts.length > MOST_PRINTED ? `The first ${MOST_PRINTED} of ${count(all, "node")}.`
      : parts.length === all ? ""
      : `${parts.length} of ${count(all, "node")} contain what is searched for.`;
  }

  new ResizeObserver(requestDraw).observe(scroller);
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
    if (position >= 0 && (reordered || changed.has("node"))) reveal(position);
    draw();
  }

  return {
    show,
    hide() {
      visible = false;
    },
  };
}
