/* The shortcuts: each is registered with the text by which the help lists it. */

import { state } from "./store.js";

const shortcuts = []; // { keys, help, section, action, view }

/** @type {(event: KeyboardEvent) => boolean} */
const always = () => true;

/* Registers a shortcut.

   keys: values of KeyboardEvent.key that do the same. action(event). view: name of the only
   view in which it works; else it works everywhere. when(event): whether it applies; a key
   that is handled elsewhere is only listed, by when: () => false. */
export function shortcut(
  keys, help, action, { section = "Everywhere", view = null, when = always } = {},
) {
  shortcuts.push({ keys: [keys].flat(), help, section, action, view, when });
}

/* All shortcuts, by section: [section, [{ keys, help }]]. */
export function sections() {
  const found = new Map();
  for (const known of shortcuts) {
    if (!found.has(known.section)) found.set(known.section, []);
    found.get(known.section).push(known);
  }
  return [...found];
}

function isTyping(target) {
  return target.matches("input:not([type=radio], [type=checkbox], [type=range]), textarea, select");
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target) || document.querySelector(":is(dialog[open], :popover-open)")) return;
  const found = shortcuts.find(({ keys, view, when }) =>
    keys.includes(event.key) && (view === null || view === state.view) && when(event));
  if (!found) return;
  event.preventDefault();
  found.action(event);
}

export function listenForKeys() {
  document.addEventListener("keydown", onKey);
}
