"use strict";

/* Connects the parts of the page. The state { run, path, node } is kept in the hash of the
   URL, so that a view can be shared. The default path is the first of FIRST_PATHS that is
   not 0 everywhere; the default node is the end of the critical path. */
(() => {
  const { overview, runs: loaded } = JSON.parse(dom.byId("data").textContent);
  const FIRST_PATHS = ["h-imb", "comp-imb", "comp-abs", "sync"];
  const state = { run: 0, path: null, node: null };
  let run = null;
  let metric = null; // chosen in the panel; null: the metric of the path
  let request = 0;

  const canvas = dom.byId("graph");
  const layer = dom.svg("g");
  canvas.append(layer);
  const overviewMap = minimap.create(dom.byId("minimap"), (point) => view.centre(point));
  const drawing = graph.create(canvas, layer, {
    onSelect: select,
    onReach: (node) => view.reveal(drawing.box(node)),
  });
  const view = viewport.create(canvas, layer, (now, size) => {
    drawing.zoomed(now.scale);
    overviewMap.track(now, size);
  });
  const panel = detail.create(dom.byId("detail"), overview, {
    onSelect: goTo,
    onMetric: (chosen) => {
      metric = chosen;
      showNode();
      dom.byId("detail").querySelector("input:checked").focus();
    },
  });
  const grid = paths.create(dom.byId("paths"), overview, (path) => {
    state.path = path;
    metric = null;
    remember();
    shade();
  });

  const shownPath = () =>
    state.path ?? FIRST_PATHS.find((path) => run.paths[path].chain.length) ?? FIRST_PATHS[0];
  const endOfPath = () => run.paths[shownPath()].chain.at(-1)?.node ?? run.root;
  const shownNode = () => Object.hasOwn(run.nodes, state.node) ? state.node : endOfPath();
  const shownMetric = () =>
    metric ?? (shownPath() === "sync" ? "comp" : shownPath().split("-")[0]);

  function remember() {
    const parts = { run: state.run };
    if (state.path) parts.path = state.path;
    if (state.node) parts.node = state.node;
    history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
  }

  function select(node, caller = null) {
    state.node = node;
    remember();
    showNode(caller);
  }

  function goTo(node) {
    select(node);
    view.reveal(drawing.box(node));
  }

  /* Updates the panel and the call chain; `caller` is the caller to highlight. */
  function showNode(caller = null) {
    const node = shownNode();
    drawing.select(node);
    panel.show(run, node, shownMetric(), caller);
    paths.chain(dom.byId("chain"), run, shownPath(), {
      selected: node, title: overview.paths[shownPath()],
      onSelect: goTo,
    });
  }

  function shade() {
    const name = shownPath();
    const { shades, chain, greatest, at } = run.paths[name];
    grid.choose(name);
    drawing.shade(name, shades, chain);
    overviewMap.shade(shades, new Set(chain.map(({ node }) => node)));
    dom.byId("greatest").textContent = greatest;
    dom.byId("scale-text").textContent = chain.length
      ? `${overview.paths[name]}; greatest at ${run.nodes[at].name}`
      : `${overview.paths[name]}; 0 everywhere`;
    showNode();
  }

  function showRun() {
    dom.byId("program").textContent = run.program;
    dom.byId("program").title = run.program;
    dom.byId("heading").textContent = run.heading;
    dom.byId("waiting").textContent = run.waiting;
    dom.byId("waiting").hidden = !run.waiting;
    dom.byId("error").textContent = run.error;
    dom.byId("error").hidden = !run.error;
    const box = drawing.show(run);
    overviewMap.show(box, drawing.boxes(), drawing.lines());
    grid.show(run);
    shade();
    find();
    view.open(box, drawing.box(shownNode()));
  }

  async function load(number) {
    const mine = ++request;
    const status = dom.byId("status");
    try {
      if (!loaded[number]) {
        status.textContent = "Drawing the call graph…";
        const answer = await fetch(`runs/${number}.json`);
        if (answer.status === 503) throw new Error(await answer.text());
        if (!answer.ok) throw new Error(`the server answered with status ${answer.status}`);
        loaded[number] = await answer.json();
      }
    } catch (error) {
      status.textContent = `Run ${number} cannot be shown: ${error.message}.`;
      return;
    }
    if (mine !== request) return; // another run was chosen in the meantime
    status.textContent = "";
    if (run === loaded[number]) {
      shade();
    } else {
      run = loaded[number];
      showRun();
    }
  }

  function readHash() {
    const hash = new URLSearchParams(location.hash.slice(1));
    const number = Number(hash.get("run") ?? 0);
    state.run = Number.isInteger(number) && overview.runs[number] ? number : 0;
    state.path = Object.hasOwn(overview.paths, hash.get("path")) ? hash.get("path") : null;
    state.node = hash.get("node");
    dom.byId("runs").value = state.run;
    load(state.run);
  }

  function find() {
    const wanted = dom.byId("search").value.trim().toLowerCase();
    const ids = wanted
      ? Object.keys(run.nodes).filter((id) => run.nodes[id].name.toLowerCase().includes(wanted))
      : null;
    drawing.match(ids && new Set(ids));
    dom.byId("matches").textContent =
      ids ? `${ids.length} of ${Object.keys(run.nodes).length} nodes; Enter goes to the next` : "";
    return ids ?? [];
  }

  function goToNextMatch() {
    const ids = find();
    if (ids.length === 0) return;
    const next = ids[(ids.indexOf(shownNode()) + 1) % ids.length];
    select(next);
    view.centre(view.middle(drawing.box(next)));
  }

  function onKey(event) {
    const typing = event.target.matches("input[type=search], select");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "+": () => view.zoom(1.25), "=": () => view.zoom(1.25), "-": () => view.zoom(0.8),
      0: view.fit, "/": () => dom.byId("search").focus(),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  }

  function offerRuns() {
    const select_ = dom.byId("runs");
    select_.append(...overview.runs.map((text, number) =>
      dom.html("option", { value: number }, text)));
    select_.hidden = overview.runs.length < 2;
    select_.addEventListener("change", () => {
      state.run = Number(select_.value);
      state.node = null;
      remember();
      load(state.run);
    });
  }

  offerRuns();
  dom.byId("zoom-in").addEventListener("click", () => view.zoom(1.25));
  dom.byId("zoom-out").addEventListener("click", () => view.zoom(0.8));
  dom.byId("zoom-fit").addEventListener("click", () => view.fit());
  dom.byId("search").addEventListener("input", find);
  dom.byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") goToNextMatch();
  });
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", readHash);
  if (overview.runs.length) readHash();
  else dom.byId("status").textContent = "The trace has no runs.";
})();
