"use strict";

/* The drawing of the call graph. Its layout is fixed; only the shades change. */
const graph = (() => {
  const DEEP = 0.865; // above this shade, white text is easier to read than black text
  const FAR = 0.45; // below this scale, only the names are shown, in larger letters
  const FAR_LETTERS = 17;
  const HALO = 5; // distance of the frame around the chosen node
  const ARROWS = {
    ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
  };

  function create(canvas, layer, { onSelect, onReach }) {
    let run = null;
    let nodes = new Map(); // id -> { element, outline, shape, box }, see measured()
    let edges = new Map(); // id -> element
    let focused = null;
    const halo = dom.svg("rect", { class: "halo", rx: 9 });

    function show(newRun) {
      run = newRun;
      const { drawing, box } = parsed(run.svg);
      drawing.append(halo);
      layer.replaceChildren(drawing);
      nodes = measured(drawing);
      edges = new Map(Array.from(drawing.querySelectorAll("g.edge"), (element) =>
        [element.id, element]));
      for (const [id, node] of nodes) dressNode(node, run.nodes[id].name);
      for (const [id, element] of edges) dressEdge(element, run, run.edges[id]);
      focused = null;
      focusable(run.root);
      return box;
    }

    function shade(path, shades, chain) {
      const critical = new Set(chain.map(({ node }) => node));
      const steps = new Set(chain.slice(1).map(({ node }, i) => `${chain[i].node} ${node}`));
      const metric = path.split("-")[0];
      canvas.dataset.metric = metric;
      for (const [id, { element, outline }] of nodes) {
        // Set on the outline, not on the node, where all its texts would inherit it.
        outline.style.setProperty("--shade", shades[id]);
        element.classList.toggle("deep", shades[id] > DEEP);
        element.classList.toggle("critical", critical.has(id));
        element.setAttribute("aria-label", nodeText(run.nodes[id], metric, critical.has(id)));
      }
      for (const [id, element] of edges) {
        const { caller, callee } = run.edges[id];
        element.classList.toggle("critical", steps.has(`${caller} ${callee}`));
      }
    }

    function select(id) {
      for (const [other, { element }] of nodes) {
        element.setAttribute("aria-pressed", other === id);
      }
      const { x, y, width, height } = nodes.get(id).shape;
      halo.setAttribute("x", x - HALO);
      halo.setAttribute("y", y - HALO);
      halo.setAttribute("width", width + 2 * HALO);
      halo.setAttribute("height", height + 2 * HALO);
    }

    /* Highlight the nodes that were found by a search; null ends the search. */
    function match(ids) {
      canvas.classList.toggle("searching", ids !== null);
      for (const [id, { element }] of nodes) {
        element.classList.toggle("match", ids !== null && ids.has(id));
      }
    }

    /* Only one node at a time is reached by the Tab key; the arrow keys change which one. */
    function focusable(id) {
      nodes.get(focused)?.element.setAttribute("tabindex", -1);
      focused = id;
      nodes.get(id).element.setAttribute("tabindex", 0);
    }

    function onKey(event) {
      const id = event.target.closest("g.node")?.id;
      if (!id || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        onSelect(id);
      } else if (Object.hasOwn(ARROWS, event.key)) {
        event.preventDefault();
        const next = neighbour(nodes, id, ...ARROWS[event.key]);
        if (next === null) return;
        nodes.get(next).element.focus();
        onReach(next);
      }
    }

    function onClick(event) {
      const group = event.target.closest("g.node, g.edge");
      if (!group) return;
      if (nodes.has(group.id)) onSelect(group.id);
      else onSelect(run.edges[group.id].callee, run.edges[group.id].caller);
    }

    /* A copy of the lines of all edges, for the overview. */
    function lines() {
      const transform = layer.querySelector("g.graph").getAttribute("transform");
      return dom.svg("g", { transform }, ...Array.from(edges.values(), (edge) =>
        dom.svg("path", { d: edge.querySelector("path").getAttribute("d") })));
    }

    canvas.addEventListener("keydown", onKey);
    canvas.addEventListener("click", onClick);
    // On the parent: Chromium would include the SVG itself in the Tab order otherwise.
    canvas.parentElement.addEventListener("focusin", (event) => {
      const node = event.target.closest("g.node");
      if (node) focusable(node.id);
    });

    return {
      show, shade, select, match, lines,
      box: (id) => nodes.get(id).box,
      boxes: () => Array.from(nodes, ([id, { box }]) => ({ id, ...box })),
      zoomed: (scale) => canvas.classList.toggle("far", scale < FAR),
    };
  }

  /* The drawing contains names from the trace. It is parsed as XML and consists of shapes
     and texts only, so that a name cannot become a script. */
  function parsed(source) {
    const root = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
    const [x, y, width, height] = root.getAttribute("viewBox").split(" ").map(Number);
    const drawing = document.importNode(root.querySelector("g.graph"), true);
    return { drawing, box: { x, y, width, height } };
  }

  /* The positions of the nodes, in the coordinates of the drawing (shape) and of the layer
     that contains the drawing (box). */
  function measured(drawing) {
    const { a, d, e, f } = drawing.transform.baseVal.consolidate().matrix;
    return new Map(Array.from(drawing.querySelectorAll("g.node"), (element) => {
      const outline = element.querySelector("path, polygon");
      const shape = extent(outline);
      const { x, y, width, height } = shape;
      const box = { x: x * a + e, y: y * d + f, width: width * a, height: height * d };
      return [element.id, { element, outline, shape, box }];
    }));
  }

  /* The box of a node's outline, computed from its points: getBBox would be slower, because
     the browser would have to lay out all texts first. */
  function extent(outline) {
    const numbers = (outline.getAttribute("points") ?? outline.getAttribute("d"))
      .match(/-?[\d.]+/g).map(Number);
    const xs = numbers.filter((_, i) => i % 2 === 0);
    const ys = numbers.filter((_, i) => i % 2 === 1);
    const [x, y] = [Math.min(...xs), Math.min(...ys)];
    return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
  }

  function dressNode({ element, shape }, name) {
    const letters = Array.from(name);
    const short = letters.length > FAR_LETTERS
      ? [...letters.slice(0, FAR_LETTERS - 1), "…"] : letters;
    const far = dom.svg("text", {
      class: "far", x: shape.x + shape.width / 2, y: shape.y + shape.height / 2,
    }, short.join(""));
    far.style.fontSize = `${Math.min(34, (shape.width - 12) / (0.62 * short.length))}px`;
    element.append(far, dom.svg("title", {}, name));
    element.setAttribute("role", "button");
    element.setAttribute("tabindex", -1);
  }

  function dressEdge(element, { nodes }, { caller, callee, cost }) {
    const line = element.querySelector("path");
    const parts = Object.entries(cost.metrics).map(([metric, { text }]) => `${metric}  ${text}`);
    element.prepend(dom.svg("path", { class: "grip", d: line.getAttribute("d") }));
    element.append(dom.svg("title", {}, [
      `${nodes[callee].name}, through ${nodes[caller].name}:`, cost.supersteps, ...parts,
    ].join("\n")));
  }

  function nodeText({ name, cost }, metric, isCritical) {
    const parts = [name, cost.supersteps];
    if (metric in cost.metrics) parts.push(cost.metrics[metric].text);
    if (isCritical) parts.push("on the critical path");
    return parts.join(", ");
  }

  /* The nearest node in a direction; sideways distance counts twice. */
  function neighbour(nodes, id, dx, dy) {
    const here = nodes.get(id).box;
    let best = null;
    let least = Infinity;
    for (const [other, { box }] of nodes) {
      const ahead = (box.x - here.x) * dx + (box.y - here.y) * dy;
      const aside = Math.abs((box.x - here.x) * dy) + Math.abs((box.y - here.y) * dx);
      const distance = ahead + 2 * aside;
      if (ahead > 1 && aside <= 3 * ahead && distance < least) [best, least] = [other, distance];
    }
    return best;
  }

  return { create };
})();
