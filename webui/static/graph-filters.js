/* What is shown of the graph: focus, hide, show from, collapse, reset, all nodes, library. */

import { button, html } from "./dom.js";
import { below, nodeOf } from "./executed.js";
import { label } from "./format.js";
import { openMenu } from "./menu.js";

const NONE = { hidden: [], only: null, from: null, collapsed: [], all: false, unfolded: [] };

export function createFilters(context) {
  const { update, state } = context.store;
  const element = html("div", { class: "filters", role: "group", "aria-label": "What is shown" });

  const change = (filters) => update({ filters, zoom: null });
  const toggled = (list, id) =>
    (list.includes(id) ? list.filter((other) => other !== id) : [...list, id]);

  const without = (id) => state.filters.hidden.filter((other) => other !== id);
  const ends = (name, id) => (state.filters[name] === id ? { [name]: null } : {});

  /* A node around which the graph is shown is not hidden, else nothing might be left of it. */
  const ACTIONS = {
    only: (id) => change({ only: state.filters.only === id ? null : id, hidden: without(id) }),
    from: (id) => change({ from: state.filters.from === id ? null : id, hidden: without(id) }),
    hide: (id, isRoot) => {
      if (!isRoot) change({ hidden: toggled(state.filters.hidden, id), ...ends("only", id), ...ends("from", id) });
    },
    collapse: (id) => change({ collapsed: toggled(state.filters.collapsed, id) }),
    unfold: (id) => update({
      filters: { unfolded: toggled(state.filters.unfolded, id) }, zoom: null, node: id, edge: null,
    }),
    reset: () => change(NONE),
  };

  const isFolder = (model, node) => below(model, node).length > 0;

  /* Applies a filter to a node: "only", "from", "hide", "collapse", "unfold" or "reset". For a
     function below a cost centre it is applied to this. */
  function apply(name, model, number) {
    const node = nodeOf(model, number);
    if (name === "unfold" && !isFolder(model, node)) return;
    ACTIONS[name](model.nodes[node].id, node === model.root);
  }

  function toggle(model, number) {
    if (number === null) return;
    apply(isFolder(model, nodeOf(model, number)) ? "unfold" : "collapse", model, number);
  }

  function menuItems(model, node) {
    const { id } = model.nodes[node];
    const { only, from, collapsed, unfolded } = state.filters;
    const item = (text, key, name) => [text, key, () => apply(name, model, node)];
    return [
      item(only === id ? "Show others, too" : "Focus: only its callers and callees", "f", "only"),
      item(from === id ? "Show from main again" : "Show from here", "s", "from"),
      item("Hide", "h", "hide"),
      item(collapsed.includes(id) ? "Expand" : "Collapse its callees", "c", "collapse"),
      isFolder(model, node) ? item(unfolded.includes(id) ? "Fold the functions executed below it"
        : "Unfold the functions executed below it", "u", "unfold") : null,
      item("Reset", "r", "reset"),
    ].filter(Boolean);
  }

  /* The menu of a node, at the pointer or, for the menu key, at the middle of its element. */
  function openFor(event, model, number) {
    const node = nodeOf(model, number);
    const { left, top, width, height } = event.target.getBoundingClientRect();
    const byPointer = event.clientX !== 0 || event.clientY !== 0;
    const [x, y] = byPointer ? [event.clientX, event.clientY] : [left + width / 2, top + height / 2];
    openMenu(x, y, `Show ${label(model.nodes[node])}`, menuItems(model, node));
  }

  function switchButton(text, name) {
    return button(text, () => change({ [name]: !state.filters[name] }),
      { "aria-pressed": state.filters[name] });
  }

  /* Offers what can be changed now. */
  function show({ filters }, isPartly) {
    const isFiltered = Object.entries(NONE).some(([name, usual]) =>
      JSON.stringify(filters[name]) !== JSON.stringify(usual));
    element.replaceChildren(...[
      isPartly || filters.all ? switchButton("All nodes", "all") : null,
      context.api.offline ? null : switchButton("Library", "library"),
      isFiltered ? button("Reset", () => change(NONE), { title: "Reset (r)" }) : null,
    ].filter(Boolean));
  }

  return { element, apply, toggle, show, openMenu: openFor };
}
