/* What is shown of the graph: focus, hide, show from, collapse, reset, all nodes, library. */

import { button, html } from "./dom.js";
import { label } from "./format.js";
import { openMenu } from "./menu.js";

const NONE = { hidden: [], only: null, from: null, collapsed: [], all: false };

/* save(): saves the picture that is seen. */
export function createFilters(context, save) {
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
    reset: () => change(NONE),
  };

  /* Applies a filter to a node: "only", "from", "hide", "collapse" or "reset". */
  function apply(name, model, node) {
    ACTIONS[name](model.nodes[node].id, node === model.root);
  }

  function toggle(model, node) {
    if (node !== null) apply("collapse", model, node);
  }

  function menuItems(model, node) {
    const { id } = model.nodes[node];
    const { only, from, collapsed } = state.filters;
    const item = (text, key, name) => [text, key, () => apply(name, model, node)];
    return [
      item(only === id ? "Show others, too" : "Focus: only its callers and callees", "f", "only"),
      item(from === id ? "Show from main again" : "Show from here", "s", "from"),
      item("Hide", "h", "hide"),
      item(collapsed.includes(id) ? "Expand" : "Collapse its callees", "c", "collapse"),
      item("Reset", "r", "reset"),
    ];
  }

  /* The menu of a node, at the pointer or, for the menu key, at the middle of its element. */
  function openFor(event, model, node) {
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
      button("Save picture", save, { title: "Save what is seen of the graph as a picture" }),
    ].filter(Boolean));
  }

  return { element, apply, toggle, show, openMenu: openFor };
}
