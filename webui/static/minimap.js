"use strict";

/* A small overview of the whole graph, with a frame around the part that the canvas shows. */
const minimap = (() => {
  const MANY = 200;

  function create(element, goTo) {
    let frame = null;

    function show(box, nodes, lines) {
      element.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
      element.classList.toggle("many", nodes.length > MANY);
      frame = dom.svg("rect", { class: "frame" });
      element.replaceChildren(
        lines,
        ...nodes.map(({ id, x, y, width, height }) =>
          dom.svg("rect", { class: "dot", "data-node": id, x, y, width, height })),
        frame);
    }

    function shade(shades, critical) {
      for (const dot of element.querySelectorAll(".dot")) {
        dot.style.setProperty("--shade", shades[dot.dataset.node]);
        dot.classList.toggle("critical", critical.has(dot.dataset.node));
      }
    }

    function track({ x, y, scale }, { width, height }) {
      if (!frame) return;
      frame.setAttribute("x", -x / scale);
      frame.setAttribute("y", -y / scale);
      frame.setAttribute("width", width / scale);
      frame.setAttribute("height", height / scale);
    }

    function follow(event) {
      if (!event.buttons || !frame) return;
      const { x, y } = new DOMPoint(event.clientX, event.clientY)
        .matrixTransform(element.getScreenCTM().inverse());
      goTo({ x, y });
    }

    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      follow(event);
    });
    element.addEventListener("pointermove", follow);
    return { show, shade, track };
  }

  return { create };
})();
