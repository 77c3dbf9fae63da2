/* The columns of the table of nodes, of rows { part, time, loss, name, under, title }. */

import { html } from "./dom.js";
import { amount, balance, integer, percent, seconds } from "./format.js";
import { METRICS } from "./terms.js";

function metric(name) {
  return {
    title: METRICS[name], value: ({ part }) => part.cost[name].max,
    cell: ({ part }) => [
      html("span", {}, amount(part.cost[name].max, name)),
      html("span", { class: "quiet balance" }, balance(part.cost[name])),
    ],
  };
}

function lossCell({ loss }, whole) {
  const bar = html("span", { class: "loss-bar", "aria-hidden": "true" });
  bar.style.width = `${whole.loss > 0 ? 100 * loss / whole.loss : 0}%`;
  return [
    bar, html("span", {}, seconds(loss)),
    html("span", { class: "quiet" }, percent(whole.time > 0 ? loss / whole.time : 0)),
  ];
}

/* By name: title, value (by which rows are sorted), cell(part, time and loss of main). */
export const COLUMNS = {
  name: {
    title: "Node", value: ({ name }) => name,
    cell: ({ name, under, title }) => [
      html("span", { class: "node-name", title }, name), html("span", { class: "quiet", title }, under),
    ],
  },
  loss: { title: "loss", value: ({ loss }) => loss, cell: lossCell },
  time: { title: "time", value: ({ time }) => time, cell: ({ time }) => [html("span", {}, seconds(time))] },
  comp: metric("comp"), comm: metric("comm"), idle: metric("idle"), h: metric("h"),
  sync: {
    title: "supersteps", value: ({ part }) => part.count,
    cell: ({ part }) => [html("span", {}, integer(part.count))],
  },
};

/* The order of the state's `sort`: the column, and 1 where its greatest value is last. Names
   begin with A, numbers with the greatest, unless "-" is in front. */
export function order(sort) {
  const [, reverse, column] = (sort ?? "loss").match(/^(-?)(.*)$/);
  const known = Object.hasOwn(COLUMNS, column) ? column : "loss";
  return { column: known, rising: (known === "name") !== (reverse === "-") };
}

/* Parts sorted by the state's `sort`; of equals the order stays. */
export function sorted(parts, sort) {
  const { column, rising } = order(sort);
  const { value } = COLUMNS[column];
  const compare = column === "name" ? (a, b) => a.localeCompare(b, "en", { numeric: true })
    : (a, b) => a - b;
  return [...parts].sort((a, b) => (rising ? 1 : -1) * compare(value(a), value(b)));
}

/* The head of a table, whose buttons choose the order. */
export function head(sort, choose) {
  const { column, rising } = order(sort);
  return html("thead", {}, html("tr", {}, ...Object.entries(COLUMNS).map(([name, { title }]) => {
    const isChosen = name === column;
    const next = isChosen && !(sort ?? "").startsWith("-") ? `-${name}` : name;
    const mark = isChosen ? html("span", { "aria-hidden": "true" }, rising ? " ▲" : " ▼") : null;
    return html("th", {
      scope: "col", class: `of-${name}`,
      "aria-sort": isChosen ? (rising ? "ascending" : "descending") : null,
    }, html("button", { type: "button", onclick: () => choose(next === "loss" ? null : next) }, title, mark));
  })));
}

/* The cells of a row: the first is its heading. */
export function cells(part, whole) {
  return Object.entries(COLUMNS).map(([name, { cell }]) =>
    html(name === "name" ? "th" : "td", {
      class: `of-${name}`, scope: name === "name" ? "row" : null,
    }, ...cell(part, whole)));
}
