"use strict";

/* The drawing of the call graph: laid out once, then shaded in place. */
const graph = (() => {
  const DEEP = 0.865; // from this shade on white text is easier to read than black
  const FAR = 0.45; // below this scale only the names can be read, and those made larger
  const FAR_LETTERS = 17;

  function create(canvas, layer, { onSelect }) {
    let run = null;
    let nodes = new Map(); // id -> { element, shape, box }: the latter two as in measured()
    let edges = new Map(); // id -> element
    let focused = null;
    const halo = dom.svg("rect", { class: "halo", rx: 9 });

    /* The text of the drawing holds names from the trace; parsed as XML, and made by the
       server of shapes and text alone, it cannot become anything else. */
    function parse(source) {
      const document_ = new DOMParser().parseFromString(source, "image/svg+xml");
      const [x, y, width, height] =
        document_.documentElement.getAttribute("viewBox").split(" ").map(Number);
      const drawing = document.importNode(document_.querySelector("g.graph"), true);
      return { drawing, box: { x, y, width, height } };
    }

    function show(newRun) {
      run = newRun;
      const { drawing, box } = parse(run.svg);
      drawing.append(halo);
      layer.replaceChildren(drawing);
      nodes = measured(drawing);
      edges = new Map(Array.from(drawing.querySelectorAll("g.edge"), (element) =>
        [element.id, element]));
      for (const [id, node] of nodes) dressNode(id, node);
      for (const [id, element] of edges) dressEdge(id, element);
      focused = null;
      focusable(run.root);
      return box;
    }

    /* Where the nodes stand, in the coordinates of the drawing (shape) and of the layer
       (box). */
    function measured(drawing) {
      const { a, d, e, f } = drawing.transform.baseVal.consolidate().matrix;
      return new Map(Array.from(drawing.querySelectorAll("g.node"), (element) => {
        const shape = extent(element.querySelector("path, polygon"));
        const { x, y, width, height } = shape;
        const box = { x: x * a + e, y: y * d + f, width: width * a, height: height * d };
        return [element.id, { element, shape, box }];
      }));
    }

    /* Box of a node's outline, read from its points: getBBox would make the browser lay
       out all the text first. */
    function extent(outline) {
      const numbers = (outline.getAttribute("points") ?? outline.getAttribute("d"))
        .match(/-?[\d.]+/g).map(Number);
      const xs = numbers.filter((_, i) => i % 2 === 0);
      const ys = numbers.filter((_, i) => i % 2 === 1);
      const [x, y] = [Math.min(...xs), Math.min(...ys)];
      return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
    }

    function dressNode(id, { element, shape }) {
      const { name } = run.nodes[id];
      element.setAttribute("role", "button");
      element.setAttribute("tabindex", -1);
      const far = dom.svg("text", {
        class: "far", x: shape.x + shape.width / 2, y: shape.y + shape.height / 2,
      }, shortened(name));
      const size = Math.min(34, (shape.width - 12) / (0.62 * Math.min(name.length, FAR_LETTERS)));
      far.style.fontSize = `${size}px`;
      element.append(far, dom.svg("title", {}, name));
    }

    const shortened = (name) => {
      const letters = Array.from(name);
      return letters.length > FAR_LETTERS
        ? `${letters.slice(0, FAR_LETTERS - 1).join("")}…` : name;
    };

    function dressEdge(id, element) {
      const { caller, callee } = run.edges[id];
      const line = element.querySelector("path");
      element.prepend(dom.svg("path", { class: "grip", d: line.getAttribute("d") }));
      element.append(dom.svg("title", {}, edgeText(run.edges[id],
        run.nodes[caller].name, run.nodes[callee].name)));
    }

    function edgeText({ cost }, caller, callee) {
      const parts = Object.entries(cost.metrics).map(([metric, { text }]) => `${metric}  ${text}`);
      return [`${callee}, through ${caller}:`, `${cost.count} supersteps`, ...parts].join("\n");
    }

    function shade(path, shades, way) {
      const critical = new Set(way.map(({ node }) => node));
      const steps = new Set(way.slice(1).map(({ node }, i) => `${way[i].node} ${node}`));
      canvas.dataset.metric = path.split("-")[0];
      for (const [id, { element }] of nodes) {
        element.style.setProperty("--shade", shades[id]);
        element.classList.toggle("deep", shades[id] > DEEP);
        element.classList.toggle("critical", critical.has(id));
        element.setAttribute("aria-label", nodeText(id, critical.has(id)));
      }
      for (const [id, element] of edges) {
        const { caller, callee } = run.edges[id];
        element.classList.toggle("critical", steps.has(`${caller} ${callee}`));
      }
    }

    function nodeText(id, isCritical) {
      const { name, cost } = run.nodes[id];
      const metric = cost.metrics[canvas.dataset.metric];
      const parts = [name, `${cost.count} supersteps`];
      if (metric) parts.push(metric.text);
      if (isCritical) parts.push("on the critical path");
      return parts.join(", ");
    }

    function select(id) {
      for (const [other, { element }] of nodes) {
        element.setAttribute("aria-pressed", other === id);
      }
      const { shape } = nodes.get(id);
      halo.setAttribute("x", shape.x - 5);
      halo.setAttribute("y", shape.y - 5);
      halo.setAttribute("width", shape.width + 10);
      halo.setAttribute("height", shape.height + 10);
    }

    function match(ids) {
      canvas.classList.toggle("searching", ids !== null);
      for (const [id, { element }] of nodes) {
        element.classList.toggle("match", ids !== null && ids.has(id));
      }
    }

    /* One node at a time can be reached by Tab; the arrow keys choose which. */
    function focusable(id) {
      nodes.get(focused)?.element.setAttribute("tabindex", -1);
      focused = id;
      nodes.get(id).element.setAttribute("tabindex", 0);
    }

    /* The nearest node in a direction, with a preference for straight ahead. */
    function neighbour(id, dx, dy) {
      const here = nodes.get(id).box;
      let best = null;
      let least = Infinity;
      for (const [other, { box }] of nodes) {
        const ahead = (box.x - here.x) * dx + (box.y - here.y) * dy;
        const aside = Math.abs((box.x - here.x) * dy) + Math.abs((box.y - here.y) * dx);
        const distance = ahead + 2 * aside;
        if (ahead > 1 && aside <= 3 * ahead + 1 && distance < least) {
          [best, least] = [other, distance];
        }
      }
      return best;
    }

    const ARROWS = {
      ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
    };

    function onKey(event) {
      const id = event.target.closest?.("g.node")?.id;
      if (!id || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        onSelect(id);
      } else if (event.key in ARROWS) {
        event.preventDefault();
        const next = neighbour(id, ...ARROWS[event.key]);
        if (next) nodes.get(next).element.focus();
      }
    }

    function onClick(event) {
      const group = event.target.closest("g.node, g.edge");
      if (!group) return;
      if (nodes.has(group.id)) onSelect(group.id);
      else onSelect(run.edges[group.id].callee, run.edges[group.id].caller);
    }

    /* The edges once more, bare, for the overview. */
    function lines() {
      const transform = layer.querySelector("g.graph").getAttribute("transform");
      return dom.svg("g", { transform }, ...Array.from(edges.values(), (edge) =>
        dom.svg("path", { d: edge.querySelector("path").getAttribute("d") })));
    }

    canvas.addEventListener("keydown", onKey);
    canvas.addEventListener("click", onClick);
    // On the SVG itself this listener would make it a stop of the Tab key in Chromium.
    canvas.parentElement.addEventListener("focusin", (event) => {
      const node = event.target.closest("g.node");
      if (node) focusable(node.id);
    });

    return {
      show, shade, select, match,
      box: (id) => nodes.get(id).box,
      boxes: () => Array.from(nodes, ([id, { box }]) => ({ id, ...box })),
      lines,
      zoomed: (scale) => canvas.classList.toggle("far", scale < FAR),
    };
  }

  return { create };
})();
