"use strict";

/* A pie chart of a metric: one slice for each process, in the order of the pids, clockwise
   from the top. */
const pie = (() => {
  const RADIUS = 54;
  const PULLED = 5; // distance by which the greatest slice is moved outwards

  const point = (turn, radius) =>
    [radius * Math.sin(2 * Math.PI * turn), -radius * Math.cos(2 * Math.PI * turn)];

  function slicePath(from, to) {
    if (to - from > 0.99999) { // an arc from a point to itself would not be drawn
      return `M0,${-RADIUS}A${RADIUS},${RADIUS} 0 1 1 0,${RADIUS}A${RADIUS},${RADIUS} 0 1 1 0,${-RADIUS}Z`;
    }
    const large = to - from > 0.5 ? 1 : 0;
    return `M0,0L${point(from, RADIUS)}A${RADIUS},${RADIUS} 0 ${large} 1 ${point(to, RADIUS)}Z`;
  }

  /* The process with the greatest value (equation 5 of the paper); null if all are equal. */
  function greatestOf(values) {
    const most = Math.max(...values);
    return values.every((value) => value === most) ? null : values.indexOf(most);
  }

  function draw(values, texts, label) {
    const total = values.reduce((sum, value) => sum + value, 0);
    const greatest = greatestOf(values);
    const edge = RADIUS + PULLED + 2;
    const chart = dom.svg("svg", {
      class: values.length > 48 ? "pie fine" : "pie", role: "img", "aria-label": label,
      viewBox: `${-edge} ${-edge} ${2 * edge} ${2 * edge}`,
    });
    if (total === 0) {
      chart.append(dom.svg("circle", { class: "empty", r: RADIUS }));
      return chart;
    }
    let from = 0;
    values.forEach((value, pid) => {
      const to = from + value / total;
      const pulled = pid === greatest && value < total;
      const [x, y] = pulled ? point((from + to) / 2, PULLED) : [0, 0];
      chart.append(dom.svg("path", {
        class: pid === greatest ? "slice greatest" : "slice",
        "data-pid": pid, d: slicePath(from, to), transform: `translate(${x} ${y})`,
      }, dom.svg("title", {}, `process ${pid}: ${texts[pid]}, ${share(value, total)}`)));
      from = to;
    });
    return chart;
  }

  const share = (value, total) => `${total ? (100 * value / total).toFixed(1) : "0.0"}%`;

  return { draw, share, greatestOf };
})();
