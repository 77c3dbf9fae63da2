/* The help: every shortcut, and how the page is read. */

import { button, byId, html } from "./dom.js";
import { sections } from "./keys.js";

const NAMES = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", " ": "Space" };

function listed([section, shortcuts]) {
  const rows = shortcuts.flatMap(({ keys, help }) => [
    html("dt", {}, ...keys.map((key) => html("kbd", {}, NAMES[key] ?? key))),
    html("dd", {}, help),
  ]);
  return html("section", {}, html("h3", {}, section), html("dl", {}, ...rows));
}

let about = "Each box is a function or a line that ended supersteps. Its shade is the "
  + "square root of its part of the scale. Costs are written as maximum (average | minimum) "
  + "over all processes. A dashed line is a chain of calls through nodes that are not shown.";

/* Says how a page is read that is no profile. */
export function explainPage(text) {
  about = text;
}

export function openHelp() {
  const dialog = byId("help");
  dialog.replaceChildren(
    html("header", {}, html("h2", {}, "Help"),
      button("Close", () => dialog.close(), { autofocus: true })),
    html("p", {}, about),
    html("div", { class: "sections" }, ...sections().map(listed)));
  dialog.showModal();
}
