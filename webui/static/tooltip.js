/* A tooltip of the page's own, which answers at once. */

import { byId, html } from "./dom.js";

const AWAY = 14; // pixels from the pointer
const MARGIN = 8;

/* Shows lines of text beside the pointer; the first is the title. */
export function showTooltip(event, [title, ...lines]) {
  const tooltip = byId("tooltip");
  tooltip.replaceChildren(html("b", {}, title), ...lines.map((line) => html("div", {}, line)));
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const right = event.clientX + AWAY;
  const below = event.clientY + AWAY;
  const fitsRight = right + width + MARGIN < window.innerWidth;
  const fitsBelow = below + height + MARGIN < window.innerHeight;
  tooltip.style.left = `${Math.max(MARGIN, fitsRight ? right : event.clientX - AWAY - width)}px`;
  tooltip.style.top = `${Math.max(MARGIN, fitsBelow ? below : event.clientY - AWAY - height)}px`;
}

export function hideTooltip() {
  byId("tooltip").hidden = true;
}
