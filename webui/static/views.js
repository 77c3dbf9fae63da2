/* The views over one selection, in the order of their tabs, and the tabs.

   A module of a view exports create(host, context) -> { show(model, state, changed), hide() }.
   host is an empty element of its own. show is called whenever the model or the state has
   changed while the view is visible; `changed` is the set of the names of the fields of the
   state that did, with "model" where the run or its prices did; null when the view appears.
   hide is called when another view is chosen. */

import { html } from "./dom.js";
import { shortcut } from "./keys.js";
import { create as compare } from "./compare.js";
import { create as graph } from "./graph.js";
import { create as source } from "./source.js";
import { create as table } from "./table.js";
import { create as timeline } from "./timeline.js";
import { create as traffic } from "./traffic.js";

/** @type {[string, string, (host: HTMLElement, context: Context) => View][]} */
const VIEWS = [
  ["graph", "Graph", graph], ["table", "Table", table], ["timeline", "Timeline", timeline],
  ["traffic", "Traffic", traffic], ["source", "Source", source], ["compare", "Compare", compare],
];

/* Makes a tab and a host for each view. Returns { show(model, state, changed) }. */
export function createViews(tabs, main, context) {
  const { update, state } = context.store;
  const made = new Map(VIEWS.map(([name, title, create]) => {
    const host = html("section", {
      id: `view-${name}`, class: `view ${name}`, role: "tabpanel", "aria-labelledby": `tab-${name}`,
      hidden: true,
    });
    const tab = html("button", {
      type: "button", id: `tab-${name}`, role: "tab", "aria-controls": host.id,
      onclick: () => update({ view: name }),
    }, title);
    main.append(host);
    tabs.append(tab);
    return [name, { host, tab, create, view: null }];
  }));
  VIEWS.forEach(([name, title], position) => {
    shortcut(String(position + 1), title, () => update({ view: name }), { section: "Views" });
  });
  tabs.addEventListener("keydown", onArrow);
  let visible = null;

  function onArrow(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const names = [...made.keys()];
    const next = names[(names.indexOf(visible) + step + names.length) % names.length];
    update({ view: next });
    made.get(next).tab.focus();
  }

  function choose(name) {
    if (visible !== null) {
      made.get(visible).host.hidden = true;
      made.get(visible).view.hide();
    }
    visible = name;
    const chosen = made.get(name);
    chosen.host.hidden = false;
    chosen.view ??= chosen.create(chosen.host, context);
    for (const [other, { tab }] of made) {
      tab.setAttribute("aria-selected", other === name);
      tab.tabIndex = other === name ? 0 : -1;
    }
    chosen.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** @type {View["show"]} */
  function show(model, changed) {
    const name = made.has(state.view) ? state.view : "graph";
    const appears = name !== visible;
    if (appears) choose(name);
    made.get(name).view.show(model, state, appears ? null : changed);
  }

  return { show };
}
