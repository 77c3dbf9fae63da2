/* What a view that is not written yet shows. */

import { html } from "./dom.js";

export function notThereYet(host, title) {
  host.replaceChildren(html("p", { class: "notice" }, `${title}: not there yet.`));
  return { show() {}, hide() {} };
}
