"use strict";

/* The table of the critical paths: sync, and four metrics with four measures each. Each
   button shows the greatest score of its path, so that the table is a summary, too. */
const paths = (() => {
  function create(table, words, onChoose) {
    const radio = (path) => dom.html("label", { title: words.paths[path] },
      dom.html("input", {
        type: "radio", name: "path", value: path, "aria-label": words.paths[path],
        onchange: () => onChoose(path),
      }),
      dom.html("span", { "data-score": path }));

    const heads = dom.html("tr", {}, dom.html("td"),
      ...Object.values(words.measures).map(({ head, meaning }) =>
        dom.html("th", { scope: "col", title: meaning }, head)));
    const rows = Object.entries(words.metrics).map(([metric, title]) =>
      dom.html("tr", {}, dom.html("th", { scope: "row", title }, metric),
        ...Object.keys(words.measures).map((measure) =>
          dom.html("td", {}, radio(`${metric}-${measure}`)))));
    const sync = dom.html("tr", {}, dom.html("th", { scope: "row", title: words.paths.sync }, "sync"),
      dom.html("td", { colspan: 4 }, radio("sync")));
    table.replaceChildren(dom.html("thead", {}, heads), dom.html("tbody", {}, sync, ...rows));

    function show(run) {
      for (const cell of table.querySelectorAll("[data-score]")) {
        const path = cell.dataset.score;
        cell.textContent = run.paths[path].greatest + (path === "sync" ? " supersteps" : "");
      }
    }

    function choose(path) {
      table.querySelector(`input[value="${path}"]`).checked = true;
    }

    return { show, choose };
  }

  /* The nodes of the critical path from main to a cost centre, each with the score of the
     costs that passed through the path up to it. */
  function chain(list, run, path, { selected, title, onSelect }) {
    const steps = run.paths[path].chain.map(({ node, score }) =>
      dom.html("li", {}, dom.html("button", {
        type: "button", "aria-current": node === selected ? "true" : null,
        onclick: () => onSelect(node),
      }, run.nodes[node].name, " ", dom.html("span", { class: "score" }, score))));
    list.replaceChildren(dom.html("li", { class: "title" }, `Critical path: ${title}`), ...(steps.length
      ? steps : [dom.html("li", { class: "quiet" }, "nothing is critical: 0 everywhere")]));
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  return { create, chain };
})();
