"use strict";

/* The panel of one node: its costs, its callers, its processes, and the nodes it calls. */
const detail = (() => {
  const KINDS = {
    "": "function", sync: "sync", oblsync: "oblivious sync", end: "end of main",
  };

  function create(panel, words, { onSelect, onMetric }) {
    /* Shows a node; `lit` is the caller to highlight, or null. */
    function show(run, id, metric, lit) {
      const node = run.nodes[id];
      const edges = Object.values(run.edges)
        .sort((a, b) => b.cost.metrics[metric].raw - a.cost.metrics[metric].raw);
      const callers = edges.filter(({ callee }) => callee === id)
        .map((edge) => caller(run, edge, metric, lit));
      const callees = edges.filter((edge) => edge.caller === id)
        .map((edge) => link(run, edge, edge.callee, metric));
      panel.replaceChildren(
        heading(node), numbers(node.cost, metric), list("Callers", callers),
        processes(node, metric, words.metrics[metric]), list("Calls", callees));
    }

    /* The table of the four metrics; its rows select the metric of the pie and the lists. */
    function numbers(cost, chosen) {
      const heads = ["", "maximum", "average", "minimum"].map((text) =>
        dom.html("th", { scope: "col" }, text));
      const rows = Object.entries(words.metrics).map(([metric, title]) => {
        const radio = dom.html("input", {
          type: "radio", name: "metric", value: metric, checked: metric === chosen,
          onchange: () => onMetric(metric),
        });
        return dom.html("tr", { class: metric === chosen ? "chosen" : null },
          dom.html("th", { scope: "row" }, dom.html("label", {}, radio, title)),
          ...amounts(cost.metrics[metric]));
      });
      return dom.html("table", { class: "numbers" },
        dom.html("thead", {}, dom.html("tr", {}, ...heads)), dom.html("tbody", {}, ...rows));
    }

    function link(run, { cost }, id, metric) {
      return dom.html("li", {},
        dom.html("button", { type: "button", onclick: () => onSelect(id) }, run.nodes[id].name),
        dom.html("span", { class: "quiet" }, cost.supersteps),
        dom.html("span", { class: "part" }, cost.metrics[metric].text));
    }

    /* A caller, with a bar for its share in the cost of this node. */
    function caller(run, edge, metric, lit) {
      const whole = run.nodes[edge.callee].cost.metrics[metric].raw;
      const row = link(run, edge, edge.caller, metric);
      row.append(track(whole ? Math.min(1, edge.cost.metrics[metric].raw / whole) : 0));
      row.classList.toggle("lit", edge.caller === lit);
      return row;
    }

    return { show };
  }

  function heading({ name, sync, line, cost }) {
    return dom.html("header", {},
      dom.html("h2", {}, name),
      dom.html("p", { class: "quiet line" }, line ? `${KINDS[sync]} at ${line}` : KINDS[sync]),
      dom.html("p", {}, dom.html("b", {}, cost.supersteps), ` in ${cost.elapsed} elapsed`));
  }

  /* Maximum, average and minimum; if the maximum is 0, so are the others: they are empty. */
  function amounts({ max, avg, min, avgPercent, minPercent, raw }) {
    const withPercent = (text, percent) =>
      dom.html("td", {}, text, dom.html("span", { class: "percent" }, `${percent}%`));
    return [
      dom.html("td", { class: "max" }, max),
      ...(raw ? [withPercent(avg, avgPercent), withPercent(min, minPercent)]
        : [dom.html("td"), dom.html("td")]),
    ];
  }

  const list = (title, rows) => dom.html("section", {
    class: "links", "aria-label": title, hidden: rows.length === 0,
  }, dom.html("h3", {}, title), dom.html("ul", {}, ...rows));

  function track(length) {
    const fill = dom.html("span", { class: "fill" });
    fill.style.width = `${100 * length}%`;
    return dom.html("span", { class: "track" }, fill);
  }

  function processes({ name, cost }, metric, title) {
    const { values, texts } = cost.metrics[metric].pie;
    const total = values.reduce((sum, value) => sum + value, 0);
    const greatest = pie.greatestOf(values);
    const order = values.map((_, pid) => pid).sort((a, b) => values[b] - values[a] || a - b);
    const most = values[order[0]];
    const rows = order.map((pid) => bar(pid, texts[pid], pie.share(values[pid], total),
      most ? values[pid] / most : 0, pid === greatest));
    const section = dom.html("section", { "aria-label": "Processes" },
      dom.html("h3", {}, `Processes, ${title}`),
      dom.html("div", { class: "pie-row" },
        pie.draw(values, texts, `Pie of the processes: ${title} of ${name}`),
        remark(values, texts, total, greatest)),
      dom.html("ol", { class: "bars" }, ...rows));
    highlightTogether(section);
    return section;
  }

  /* A sentence that describes the pie. */
  function remark(values, texts, total, greatest) {
    if (total === 0) return dom.html("p", { class: "quiet" }, "None on any process.");
    if (greatest === null) {
      const all = values.length === 1 ? "on the only process" : `on each of ${values.length} processes`;
      return dom.html("p", {}, dom.html("b", { class: "figure" }, texts[0]), all);
    }
    const equals = values.filter((value) => value === values[greatest]).length - 1;
    const times = values[greatest] * values.length / total;
    return dom.html("p", {},
      dom.html("b", { class: "figure" }, texts[greatest]),
      dom.html("span", {}, `process ${greatest}${equals ? ` and ${equals} more` : ""}, the greatest`),
      dom.html("span", { class: "quiet" },
        `${pie.share(values[greatest], total)} of the total, ${times.toFixed(2)} times the average`));
  }

  const bar = (pid, text, share, length, isGreatest) =>
    dom.html("li", { "data-pid": pid, class: isGreatest ? "greatest" : null },
      dom.html("span", { class: "pid" }, String(pid)),
      track(length),
      dom.html("span", { class: "value" }, text),
      dom.html("span", { class: "share" }, share));

  /* Highlights the slice and the bar of the same process together. */
  function highlightTogether(section) {
    const light = (event) => {
      const pid = event.target.closest("[data-pid]")?.dataset.pid;
      for (const part of section.querySelectorAll("[data-pid]")) {
        part.classList.toggle("lit", part.dataset.pid === pid);
      }
    };
    section.addEventListener("pointerover", light);
    section.addEventListener("pointerleave", light);
  }

  return { create };
})();
