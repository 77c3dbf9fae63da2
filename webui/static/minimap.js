/* A small overview of the whole graph, with a frame around the part that the view shows. */

import { html } from "./dom.js";
import { colour } from "./theme.js";

const MARGIN = 6;
const LEAST_PX = 1.5; // a node is never drawn smaller

/* goTo(x, y) is called with the point of the drawing that the reader presses. */
export function createMinimap(host, goTo) {
  const canvas = html("canvas", { class: "minimap", "aria-hidden": "true" });
  host.replaceChildren(html("h3", {}, "Overview"), canvas);
  const context = canvas.getContext("2d");
  let scene = null;
  let look = null;
  let frame = null;

  function place() {
    const { clientWidth: width, clientHeight: height } = canvas;
    const scale = Math.min((width - 2 * MARGIN) / scene.width, (height - 2 * MARGIN) / scene.height);
    return { scale, x: (width - scale * scene.width) / 2, y: (height - scale * scene.height) / 2 };
  }

  function draw() {
    if (scene === null || look === null || canvas.clientWidth === 0) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const { scale, x, y } = place();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (const box of scene.boxes.values()) {
      const { bin, critical } = look.nodes.get(box.node);
      const [width, height] = [Math.max(LEAST_PX, box.w * scale), Math.max(LEAST_PX, box.h * scale)];
      context.fillStyle = colour(bin ? `--bin-${bin}` : "--outline");
      context.globalAlpha = bin ? 1 : 0.45;
      context.fillRect(x + box.x * scale, y + box.y * scale, width, height);
      context.globalAlpha = 1;
      context.strokeStyle = colour("--critical");
      context.lineWidth = 1;
      if (critical) context.strokeRect(x + box.x * scale, y + box.y * scale, width, height);
    }
    drawFrame(scale, x, y);
  }

  function drawFrame(scale, x, y) {
    if (frame === null) return;
    const { view, room } = frame;
    context.strokeStyle = colour("--chosen");
    context.lineWidth = 1.5;
    const left = Math.max(1, x - view.x / view.scale * scale);
    const top = Math.max(1, y - view.y / view.scale * scale);
    const right = x + (room.width - view.x) / view.scale * scale;
    const bottom = y + (room.height - view.y) / view.scale * scale;
    context.strokeRect(left, top, Math.min(canvas.clientWidth - 1, right) - left,
      Math.min(canvas.clientHeight - 1, bottom) - top);
  }

  function follow(event) {
    if (!event.buttons || scene === null) return;
    const { left, top } = canvas.getBoundingClientRect();
    const { scale, x, y } = place();
    goTo((event.clientX - left - x) / scale, (event.clientY - top - y) / scale);
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    follow(event);
  });
  canvas.addEventListener("pointermove", follow);
  return {
    show(newScene, newLook) {
      scene = newScene;
      look = newLook;
      draw();
    },
    track(view, room) {
      frame = { view: { ...view }, room: { ...room } };
      draw();
    },
    draw,
  };
}
