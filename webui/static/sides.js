/* The side panels: they fold, are as wide as the reader drags them, and are drawers in a
   narrow window. */

import { byId } from "./dom.js";
import { shortcut } from "./keys.js";

const LIMITS = { left: [180, 420], right: [220, 560] };
const STEP = 16;
const root = document.documentElement;

function width(side) {
  return byId(side).getBoundingClientRect().width;
}

function setWidth(side, value) {
  const [least, most] = LIMITS[side];
  const chosen = Math.round(Math.min(most, Math.max(least, value)));
  root.style.setProperty(`--${side}-width`, `${chosen}px`);
  byId(`${side}-grip`).setAttribute("aria-valuenow", String(chosen));
}

/* Whether the panels are drawers, which base.css decides. */
function isNarrow() {
  return getComputedStyle(byId("open-left")).display !== "none";
}

/* Opens or closes a drawer; in a wide window, folds or unfolds the panel. */
function toggle(side) {
  if (isNarrow()) openDrawer(root.dataset.drawer === side ? null : side);
  else byId("body").classList.toggle(`no-${side}`);
}

function openDrawer(side) {
  if (side === null) delete root.dataset.drawer;
  else root.dataset.drawer = side;
  byId("scrim").hidden = side === null;
  for (const each of ["left", "right"]) {
    byId(`open-${each}`).setAttribute("aria-expanded", String(each === side));
  }
  if (side !== null) byId(side).querySelector("button, input, [tabindex]")?.focus();
}

function resizable(side) {
  const grip = byId(`${side}-grip`);
  const sign = side === "left" ? 1 : -1;
  let from = null;
  const [least, most] = LIMITS[side];
  grip.setAttribute("aria-valuemin", String(least));
  grip.setAttribute("aria-valuemax", String(most));
  grip.setAttribute("aria-valuenow", String(parseInt(getComputedStyle(root).getPropertyValue(`--${side}-width`), 10)));
  grip.addEventListener("pointerdown", (event) => {
    grip.setPointerCapture(event.pointerId);
    from = { x: event.clientX, width: width(side) };
  });
  grip.addEventListener("pointermove", (event) => {
    if (from !== null) setWidth(side, from.width + sign * (event.clientX - from.x));
  });
  grip.addEventListener("pointerup", () => { from = null; });
  grip.addEventListener("dblclick", () => toggle(side));
  grip.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (event.key === "Enter") toggle(side);
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    setWidth(side, width(side) + sign * step);
  });
}

export function startSides() {
  for (const side of ["left", "right"]) {
    resizable(side);
    byId(`open-${side}`).addEventListener("click", () => toggle(side));
  }
  byId("scrim").addEventListener("click", () => openDrawer(null));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && root.dataset.drawer) openDrawer(null);
  });
  shortcut("[", "Fold or unfold the left panel", () => toggle("left"), { section: "Panels" });
  shortcut("]", "Fold or unfold the right panel", () => toggle("right"), { section: "Panels" });
}
