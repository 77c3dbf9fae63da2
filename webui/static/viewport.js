"use strict";

/* Pan and zoom of the graph: the part of the drawing that the canvas shows.

   A point q of the drawing is at q * scale + (x, y) on the canvas. */
const viewport = (() => {
  const PADDING = 22;
  const SMALLEST = 0.03;
  const GREATEST = 4;
  const GREATEST_FIT = 1.25; // a graph of three nodes need not fill the screen
  const READABLE = 0.5;
  const CLICK_PX = 4; // a press that moves less than this is a click

  function create(canvas, layer, onChange) {
    const view = { x: 0, y: 0, scale: 1 };
    let drawing = { x: 0, y: 0, width: 1, height: 1 };

    let room = { width: 1, height: 1 };

    function measure() {
      room = { width: canvas.clientWidth, height: canvas.clientHeight };
    }
    const bounded = (scale) => Math.min(GREATEST, Math.max(SMALLEST, scale));

    function apply() {
      layer.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
      onChange(view, room);
    }

    function centre(point, scale = view.scale) {
      const { width, height } = room;
      view.scale = bounded(scale);
      view.x = width / 2 - point.x * view.scale;
      view.y = height / 2 - point.y * view.scale;
      apply();
    }

    const middle = (box) => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });

    function scaleToFit() {
      const { width, height } = room;
      const fitting = Math.min(
        (width - 2 * PADDING) / drawing.width, (height - 2 * PADDING) / drawing.height);
      return Math.min(GREATEST_FIT, fitting);
    }

    const fit = () => centre(middle(drawing), scaleToFit());

    /* Shows a new drawing: all of it or, if it would be too small to read, only the
       surroundings of the interesting box. */
    function open(box, interesting) {
      drawing = box;
      measure();
      if (scaleToFit() >= READABLE) fit();
      else centre(middle(interesting), READABLE * 1.4);
    }

    function zoom(factor, at = { x: room.width / 2, y: room.height / 2 }) {
      const scale = bounded(view.scale * factor);
      const ratio = scale / view.scale;
      view.x = at.x - (at.x - view.x) * ratio;
      view.y = at.y - (at.y - view.y) * ratio;
      view.scale = scale;
      apply();
    }

    /* Moves the view by the least distance that makes a box visible. */
    function reveal(box) {
      const { width, height } = room;
      const shift = (low, high, end) => {
        if (low < PADDING) return PADDING - low;
        return high > end - PADDING ? end - PADDING - high : 0;
      };
      const left = box.x * view.scale + view.x;
      const top = box.y * view.scale + view.y;
      view.x += shift(left, left + box.width * view.scale, width);
      view.y += shift(top, top + box.height * view.scale, height);
      apply();
    }

    function onWheel(event) {
      event.preventDefault();
      const { left, top } = canvas.getBoundingClientRect();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const speed = event.ctrlKey ? 0.01 : 0.0016; // a pinch comes as small steps with ctrl
      zoom(Math.exp(-event.deltaY * lines * speed),
        { x: event.clientX - left, y: event.clientY - top });
    }

    function dragged() {
      let from = null;
      let moved = false;
      canvas.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        from = { x: event.clientX - view.x, y: event.clientY - view.y,
          startX: event.clientX, startY: event.clientY };
        moved = false;
      });
      canvas.addEventListener("pointermove", (event) => {
        if (!from) return;
        const far = Math.hypot(event.clientX - from.startX, event.clientY - from.startY);
        if (!moved && far < CLICK_PX) return;
        // Capture the pointer only now: otherwise the node would not receive the click.
        if (!moved) canvas.setPointerCapture(event.pointerId);
        moved = true;
        canvas.classList.add("dragging");
        view.x = event.clientX - from.x;
        view.y = event.clientY - from.y;
        apply();
      });
      const end = () => {
        from = null;
        canvas.classList.remove("dragging");
      };
      canvas.addEventListener("pointerup", end);
      canvas.addEventListener("pointercancel", end);
      canvas.addEventListener("click", (event) => {
        if (moved) event.stopPropagation();
        moved = false;
      }, { capture: true });
    }

    canvas.addEventListener("wheel", onWheel, { passive: false });
    dragged();
    new ResizeObserver(() => {
      measure();
      onChange(view, room);
    }).observe(canvas);
    return { open, fit, zoom, reveal, centre, middle };
  }

  return { create };
})();
