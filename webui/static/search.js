/* The search: marks the nodes that are found in every view, and walks from one to the next. */

import { html } from "./dom.js";
import { integer, label, place } from "./format.js";
import { shortcut } from "./keys.js";

/** @param {HTMLElement} host @param {Context} context */
export function create(host, { store }) {
  const { state, update } = store;
  const input = html("input", {
    type: "search", placeholder: "Search  /", autocomplete: "off", spellcheck: "false",
    "aria-label": "Search nodes", "aria-keyshortcuts": "/", "aria-describedby": "search-count",
    title: "A part of a name, or file:line. Enter goes to the next, Shift-Enter back.",
    oninput: () => update({ search: input.value }, { push: state.search === "" }),
    onkeydown: onKey,
  });
  const count = html("span", { id: "search-count", class: "quiet", "aria-live": "polite" });
  host.replaceChildren(count, input);
  /** @type {Model} */
  let model = null;
  let found = [];
  shortcut("/", "Search a part of a name, or file:line: there Enter goes to the next "
    + "node, Shift-Enter to the one before, and Escape clears", () => {
    input.focus();
    input.select();
  });

  function onKey(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      if (state.search === "") input.blur();
      else update({ search: "" });
    }
  }

  /* Selects the next node that is found, or the one before; after the last comes the first. */
  function go(step) {
    if (found.length === 0) return;
    const at = found.indexOf(model.indexOf(state.node));
    const next = at < 0 && step < 0 ? found.length - 1 : (at + step + found.length) % found.length;
    update({ node: model.nodes[found[next]].id, edge: null });
  }

  function show(shown) {
    model = shown;
    const wanted = state.search.trim().toLowerCase();
    found = wanted === "" ? [] : model.nodes.flatMap((node, at) => (isMeant(node, wanted) ? [at] : []));
    model.found = wanted === "" ? null : new Set(found);
    if (input.value !== state.search) input.value = state.search;
    const at = found.indexOf(model.indexOf(state.node));
    count.textContent = wanted === "" ? "" : counted(at, found.length);
  }

  return { show };
}

/* Whether the name or the place of a node contains a text; one that names a line is the end of the place. */
function isMeant(node, wanted) {
  const where = place(node).toLowerCase();
  return label(node).toLowerCase().includes(wanted)
    || (/:\d+$/.test(wanted) ? where.endsWith(wanted) : where.includes(wanted));
}

function counted(at, length) {
  if (length === 0) return "nothing found";
  return at < 0 ? `${integer(length)} found` : `${integer(at + 1)} of ${integer(length)}`;
}
