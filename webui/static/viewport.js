/* Pan and zoom: which part of a drawing its element shows. A point q of the drawing is at
   q * scale + (x, y) in the element. */

import { followPointers } from "./pointers.js";

const SMALLEST = 0.02;
const GREATEST = 4;
const GREATEST_FIT = 1.35; // a graph of three nodes need not fill the screen
const WHEEL = 0.0016;
const PINCH = 0.01; // a pinch on a touchpad comes as small wheel steps with ctrl

export const PADDING = 24;

/* onChange(view) after each change; onRest() once a change by the reader has ended. */
export function createViewport(element, { onChange, onRest }) {
  const view = { x: 0, y: 0, scale: 1 };
  let drawing = { width: 1, height: 1 };
  let room = { width: 1, height: 1 };
  let fitted = true;
  let resting = 0;

  const bounded = (scale) => Math.min(GREATEST, Math.max(SMALLEST, scale));

  function measure() {
    room = { width: element.clientWidth, height: element.clientHeight };
    return room;
  }

  function rested() {
    clearTimeout(resting);
    resting = setTimeout(onRest, 150);
  }

  function centre(x, y, scale = view.scale) {
    view.scale = bounded(scale);
    view.x = room.width / 2 - x * view.scale;
    view.y = room.height / 2 - y * view.scale;
    onChange(view);
  }

  function fittingScale() {
    return Math.min(GREATEST_FIT, scaleOf({ w: drawing.width, h: drawing.height }));
  }

  function fit() {
    fitted = true;
    centre(drawing.width / 2, drawing.height / 2, fittingScale());
  }

  function load(size) {
    drawing = { width: Math.max(1, size.width), height: Math.max(1, size.height) };
    measure();
  }

  function zoom(factor, at = { x: room.width / 2, y: room.height / 2 }) {
    const scale = bounded(view.scale * factor);
    const ratio = scale / view.scale;
    view.x = at.x - (at.x - view.x) * ratio;
    view.y = at.y - (at.y - view.y) * ratio;
    view.scale = scale;
    fitted = false;
    onChange(view);
    rested();
  }

  function pan(x, y) {
    view.x += x;
    view.y += y;
    fitted = false;
    onChange(view);
    rested();
  }

  /* Moves the view by the least distance that makes a box visible. */
  function reveal({ x, y, w, h }) {
    const shift = (low, high, size) => {
      if (low < PADDING) return PADDING - low;
      return high > size - PADDING ? Math.max(size - PADDING - high, PADDING - low) : 0;
    };
    const left = x * view.scale + view.x;
    const top = y * view.scale + view.y;
    const byX = shift(left, left + w * view.scale, room.width);
    const byY = shift(top, top + h * view.scale, room.height);
    if (byX || byY) pan(byX, byY);
  }

  /* The scale at which a box just fits. */
  function scaleOf({ w, h }) {
    return Math.min((room.width - 2 * PADDING) / w, (room.height - 2 * PADDING) / h);
  }

  /* Shows a box in the middle; where the room is too small for all of it, the part that has
     to be seen stays in view. */
  function open(box, part, scale) {
    centre(box.x + box.w / 2, box.y + box.h / 2, scale);
    reveal(part);
    clearTimeout(resting); // the reader has not moved it
    fitted = false;
  }

  followPointers(element, {
    pan(x, y) {
      element.classList.add("dragging");
      pan(x, y);
    },
    pinch: zoom,
    release: () => element.classList.remove("dragging"),
    cancel: () => element.classList.remove("dragging"),
    wheel: (pixels, at, { ctrlKey }) => zoom(Math.exp(-pixels * (ctrlKey ? PINCH : WHEEL)), at),
  });
  return {
    load, fit, zoom, pan, reveal, centre, open, measure, fittingScale, scaleOf,
    get view() { return view; },
    get room() { return room; },
    get fitted() { return fitted; },
    set fitted(value) { fitted = value; },
  };
}
