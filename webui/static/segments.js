/* A row of choices, of which one is chosen. */

import { html } from "./dom.js";

/* Fills a group with radio buttons: choices { value: text }; choose(value) on a choice. */
export function segments(group, choices, chosen, choose) {
  const focused = group.contains(document.activeElement);
  group.replaceChildren(...Object.entries(choices).map(([value, text]) =>
    html("label", {},
      html("input", {
        type: "radio", name: group.getAttribute("aria-label"), value, checked: value === chosen,
        onchange: () => choose(value),
      }),
      html("span", {}, text))));
  if (focused) group.querySelector("input:checked")?.focus();
}
