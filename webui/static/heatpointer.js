/* Mouse, pen and fingers on the heat map: drag moves, two fingers and the wheel zoom, and
   dragging selects a range with Shift or in the mode for it. */

const STILL = 3; // pixels within which a press is a click
const WHEEL = 1.0015; // zoom for each pixel of the wheel

/* Follows the pointers on a canvas.

   view() and setView(low, high): the part of the axis that is seen. axisAt(pixel), width():
   pixels across. selecting(): whether dragging selects. selectTo(from, to, done): the range
   on the axis while it is selected, and when it is. click(event, selecting), point(event),
   leave(); cancel(): the browser has taken the pointer, to scroll the page. */
export function followPointers(canvas, on) {
  const pressed = new Map(); // position by pointer
  let drag = null;

  /* The distance of two fingers, null of one. */
  function spread() {
    const [a, b] = [...pressed.values()];
    return pressed.size === 2 ? Math.max(Math.abs(a - b), 20) : null;
  }

  function zoomed(factor, middle, [low, high]) {
    on.setView(middle - (middle - low) * factor, middle + (high - middle) * factor);
  }

  function move(event) {
    if (pressed.has(event.pointerId)) pressed.set(event.pointerId, event.offsetX);
    if (drag === null) return on.point(event);
    if (Math.abs(event.offsetX - drag.x) > STILL) drag.moved = true;
    if (!drag.moved) return undefined;
    const [low, high] = drag.view;
    if (drag.spread !== null) {
      const now = spread();
      return now === null ? undefined : zoomed(drag.spread / now, (low + high) / 2, drag.view);
    }
    if (drag.selecting) return on.selectTo(drag.from, on.axisAt(event.offsetX), false);
    const distance = (drag.x - event.offsetX) / on.width() * (high - low);
    return on.setView(low + distance, high + distance);
  }

  function press(event) {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pressed.set(event.pointerId, event.offsetX);
    drag = {
      selecting: event.shiftKey || on.selecting(), x: event.offsetX, view: on.view(),
      from: on.axisAt(event.offsetX), moved: false, spread: spread(),
    };
  }

  function release(event) {
    pressed.delete(event.pointerId);
    const ended = drag;
    drag = null;
    if (ended === null) return;
    if (!ended.moved) on.click(event, ended.selecting);
    else if (ended.selecting) on.selectTo(ended.from, on.axisAt(event.offsetX), true);
  }

  function turn(event) {
    event.preventDefault();
    const view = on.view();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const distance = event.deltaX / on.width() * (view[1] - view[0]);
      on.setView(view[0] + distance, view[1] + distance);
    } else zoomed(WHEEL ** event.deltaY, on.axisAt(event.offsetX), view);
  }

  canvas.addEventListener("pointerdown", press);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", (event) => {
    pressed.delete(event.pointerId);
    drag = null;
    on.cancel();
  });
  canvas.addEventListener("pointerleave", () => {
    if (drag === null) on.leave();
  });
  canvas.addEventListener("wheel", turn, { passive: false });
}
