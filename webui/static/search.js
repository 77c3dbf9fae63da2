/* The search: marks the nodes that are found in every view, and walks from one to the next. */

import { html } from "./dom.js";
import { integer } from "./format.js";
import { shortcut } from "./keys.js";
import { search } from "./match.js";

/** @param {HTMLElement} host @param {Context} context */
export function create(host, { store }) {
  const { state, update } = store;
  const input = html("input", {
    type: "search", placeholder: "Search  /", autocomplete: "off", spellcheck: "false",
    "aria-label": "Search nodes", "aria-keyshortcuts": "/", "aria-describedby": "search-count",
    title: "A part of a name, file:line, or /expression/. Enter goes to the next, Shift-Enter back.",
    oninput: () => update({ search: input.value }, { push: state.search === "" }),
    onkeydown: onKey,
  });
  const count = html("span", { id: "search-count", class: "quiet", "aria-live": "polite" });
  const error = html("p", { class: "search-error", role: "alert", hidden: true });
  host.replaceChildren(count, input, error);
  /** @type {Model} */
  let model = null;
  let found = [];
  shortcut("/", "Search a part of a name, file:line, or /expression/: there Enter goes to the next "
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
    const result = search(model.nodes, state.search);
    found = result.found ?? [];
    model.found = result.found === null ? null : new Set(found);
    if (input.value !== state.search) input.value = state.search;
    const at = found.indexOf(model.indexOf(state.node));
    count.textContent = result.found === null || result.error ? "" : counted(at, found.length);
    error.textContent = result.error;
    error.hidden = result.error === "";
    input.setAttribute("aria-invalid", String(result.error !== ""));
  }

  return { show };
}

function counted(at, length) {
  if (length === 0) return "nothing found";
  return at < 0 ? `${integer(length)} found` : `${integer(at + 1)} of ${integer(length)}`;
}
