/* Says in every view that the page shows some of the supersteps only, and shows all again. */

import { button, byId, html } from "./dom.js";
import { integer } from "./format.js";

/** @param {Context} context */
export function createBrush({ store }) {
  const host = byId("brushed");

  function show(_, { brush }) {
    host.hidden = brush === null;
    if (brush === null) return;
    const [first, last] = brush.map(integer);
    host.replaceChildren(
      html("span", {}, first === last ? `Only superstep ${first}` : `Only supersteps ${first} to ${last}`),
      button("Show all", () => store.update({ brush: null }), {
        class: "plain-button", title: "Show all supersteps in every view",
      }));
  }

  return { show };
}
