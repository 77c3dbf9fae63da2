/* Mouse, pen and fingers on an element: a press that moves, two fingers, and the wheel. */

const CLICK_PX = 4; // a press that moves less than this is a click
const LINE_PX = 16; // of a wheel that turns by lines

/* Calls, where they are given: press(event) with the first pointer, pan(x, y, event) by how far the
   pointers moved, pinch(factor, at) for two of them, release(event, moved) with the last one, cancel() when
   the browser took them, to scroll the page, hover(event) without a press, wheel(pixels, at, event). at: a
   point { x, y } of the element. No click follows a press that moved. */
export function followPointers(element, on) {
  const pressed = new Map();
  let moved = false;

  function at({ clientX, clientY }) {
    const { left, top } = element.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  }

  function middle() {
    const [a, b = a] = [...pressed.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) };
  }

  function move(event) {
    const from = pressed.get(event.pointerId);
    if (!from) return on.hover?.(event);
    const to = at(event);
    if (!moved && Math.hypot(to.x - from.x, to.y - from.y) < CLICK_PX) return undefined;
    // Capture the pointer only now: otherwise what is inside would not receive the click.
    if (!moved) element.setPointerCapture(event.pointerId);
    moved = true;
    const before = middle();
    pressed.set(event.pointerId, to);
    const after = middle();
    on.pan(after.x - before.x, after.y - before.y, event);
    if (pressed.size > 1 && before.apart > 0) on.pinch(after.apart / before.apart, after);
    return undefined;
  }

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (pressed.size === 0) {
      moved = false;
      on.press?.(event);
    }
    pressed.set(event.pointerId, at(event));
  });
  element.addEventListener("pointermove", move);
  element.addEventListener("pointerup", (event) => {
    if (pressed.delete(event.pointerId) && pressed.size === 0) on.release?.(event, moved);
  });
  element.addEventListener("pointercancel", () => {
    pressed.clear();
    on.cancel?.();
  });
  element.addEventListener("click", (event) => {
    if (moved) event.stopPropagation();
    moved = false;
  }, { capture: true });
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    on.wheel(event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1), at(event), event);
  }, { passive: false });
}
