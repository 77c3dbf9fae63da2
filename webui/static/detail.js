"use strict";

/* The panel of one node: its numbers, who called it and whom it called, its processes. */
const detail = (() => {
  const supersteps = (count) => count === 1 ? "1 superstep" : `${count} supersteps`;

  function create(panel, words, { onSelect, onMetric }) {
    function show(run, id, metric, caller) {
      const node = run.nodes[id];
      const edges = Object.values(run.edges);
      panel.replaceChildren(
        heading(node),
        numbers(node.cost, metric),
        links(run, "Callers", edges.filter(({ callee }) => callee === id), "caller", metric, caller),
        processes(node, metric),
        links(run, "Calls", edges.filter((edge) => edge.caller === id), "callee", metric, null));
    }

    const KINDS = {
      "": "function", sync: "sync", oblsync: "oblivious sync", end: "end of main",
    };

    function heading({ name, sync, place, cost }) {
      return dom.html("header", {},
        dom.html("h2", {}, name),
        dom.html("p", { class: "quiet place" }, place ? `${KINDS[sync]} at ${place}` : KINDS[sync]),
        dom.html("p", {}, dom.html("b", {}, supersteps(cost.count)),
          ` in ${cost.elapsed} elapsed`));
    }

    /* The table of the four metrics; its rows choose what the pie and the parts show. */
    function numbers(cost, chosen) {
      const heads = ["", "maximum", "average", "minimum"];
      const head = dom.html("tr", {}, ...heads.map((text) => dom.html("th", { scope: "col" }, text)));
      const rows = Object.entries(words.metrics).map(([metric, title]) => {
        const { max, avg, min, avgPercent, minPercent, raw } = cost.metrics[metric];
        const radio = dom.html("input", {
          type: "radio", name: "metric", value: metric, checked: metric === chosen,
          onchange: () => onMetric(metric),
        });
        return dom.html("tr", { class: metric === chosen ? "chosen" : null },
          dom.html("th", { scope: "row" }, dom.html("label", {}, radio, title)),
          dom.html("td", { class: "max" }, max),
          ...(raw ? [withPercent(avg, avgPercent), withPercent(min, minPercent)]
            : [dom.html("td"), dom.html("td")]));
      });
      return dom.html("table", { class: "numbers" },
        dom.html("thead", {}, head), dom.html("tbody", {}, ...rows));
    }

    const withPercent = (text, percent) =>
      dom.html("td", {}, text, dom.html("span", { class: "percent" }, `${percent}%`));

    function processes({ name, cost }, metric) {
      const { values, texts } = cost.metrics[metric].pie;
      const total = values.reduce((sum, value) => sum + value, 0);
      const greatest = total ? pie.greatestOf(values) : null;
      const order = values.map((_, pid) => pid).sort((a, b) => values[b] - values[a] || a - b);
      const most = values[order[0]];
      const title = words.metrics[metric];
      const section = dom.html("section", { class: "processes", "aria-label": "Processes" },
        dom.html("h3", {}, `Processes, ${title}`),
        dom.html("div", { class: "pie-row" },
          pie.draw({ values, texts }, `Pie of the processes: ${title} of ${name}`),
          remark(values, texts, total, greatest)),
        dom.html("ol", { class: "bars" }, ...order.map((pid) => bar(texts[pid],
          { pid, share: pie.share(values[pid], total), length: most ? values[pid] / most : 0,
            greatest: pid === greatest }))));
      linked(section);
      return section;
    }

    /* What the pie says, in words. */
    function remark(values, texts, total, greatest) {
      if (total === 0) return dom.html("p", { class: "quiet" }, "None on any process.");
      if (greatest === null) {
        return dom.html("p", {}, dom.html("b", { class: "figure" }, texts[0]),
          `on each of the ${values.length} processes`);
      }
      const equals = values.filter((value) => value === values[greatest]).length - 1;
      const others = equals ? ` and ${equals} more` : "";
      const ratio = values[greatest] * values.length / total;
      return dom.html("p", {},
        dom.html("b", { class: "figure" }, texts[greatest]),
        dom.html("span", {}, `process ${greatest}${others}, the greatest`),
        dom.html("span", { class: "quiet" }, values.length > 1
          ? `${pie.share(values[greatest], total)} of the whole, ${ratio.toFixed(2)} times the mean`
          : "the only process"));
    }

    function bar(text, { pid, share, length, greatest }) {
      const fill = dom.html("span", { class: "fill" });
      fill.style.width = `${100 * length}%`;
      return dom.html("li", { "data-pid": pid, class: greatest ? "greatest" : null },
        dom.html("span", { class: "pid" }, String(pid)),
        dom.html("span", { class: "track" }, fill),
        dom.html("span", { class: "value" }, text),
        dom.html("span", { class: "share" }, share));
    }

    /* A slice and a bar of one process light up together. */
    function linked(section) {
      const light = (event) => {
        const pid = event.target.closest("[data-pid]")?.dataset.pid;
        for (const part of section.querySelectorAll("[data-pid]")) {
          part.classList.toggle("lit", part.dataset.pid === pid);
        }
      };
      section.addEventListener("pointerover", light);
      section.addEventListener("pointerleave", light);
    }

    function links(run, title, edges, end, metric, lit) {
      const section = dom.html("section", { class: "links", "aria-label": title });
      if (edges.length === 0) return section;
      edges.sort((a, b) => b.cost.metrics[metric].raw - a.cost.metrics[metric].raw);
      section.append(dom.html("h3", {}, title),
        dom.html("ul", {}, ...edges.map((edge) => link(run, edge, end, metric, lit))));
      return section;
    }

    function link(run, edge, end, metric, lit) {
      const { count, metrics } = edge.cost;
      const whole = run.nodes[edge.callee].cost.metrics[metric].raw;
      const fill = dom.html("span", { class: "fill" });
      fill.style.width = `${whole ? Math.min(100, 100 * metrics[metric].raw / whole) : 0}%`;
      const name = dom.html("button", { type: "button", onclick: () => onSelect(edge[end]) },
        run.nodes[edge[end]].name);
      return dom.html("li", { class: edge[end] === lit ? "lit" : null },
        name, dom.html("span", { class: "quiet count" }, supersteps(count)),
        dom.html("span", { class: "part" }, metrics[metric].text),
        end === "caller" ? dom.html("span", { class: "track" }, fill) : "");
    }

    return { show };
  }

  return { create };
})();
