/* A context menu: opened at a point, walked by arrow keys, closed by Escape or a click elsewhere. */

import { html } from "./dom.js";

let open = null;

export function closeMenu() {
  open?.menu.remove();
  open?.back?.focus({ preventScroll: true });
  open = null;
}

function onKey(event) {
  const items = [...open.menu.querySelectorAll("button")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    const next = items.indexOf(document.activeElement) + step;
    items[(next + items.length) % items.length].focus();
  } else if (event.key === "Escape" || event.key === "Tab") {
    closeMenu();
  } else if (event.key !== "Enter" && event.key !== " ") {
    return;
  }
  if (event.key !== "Enter" && event.key !== " ") event.preventDefault();
  event.stopPropagation();
}

/* Opens a menu at a point of the window; items: [text, key, action]. */
export function openMenu(x, y, label, items) {
  closeMenu();
  const menu = html("div", { class: "menu", role: "menu", "aria-label": label, onkeydown: onKey },
    ...items.map(([text, key, action]) => html("button", {
      type: "button", role: "menuitem", onclick: () => {
        closeMenu();
        action();
      },
    }, html("span", {}, text), html("kbd", {}, key))));
  open = { menu, back: document.activeElement };
  document.body.append(menu);
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(4, Math.min(x, window.innerWidth - width - 4))}px`;
  menu.style.top = `${Math.max(4, Math.min(y, window.innerHeight - height - 4))}px`;
  menu.querySelector("button").focus();
}

document.addEventListener("pointerdown", (event) => {
  if (open && !open.menu.contains(event.target)) closeMenu();
});
