/* A window of the heat map: what each row of processes did in each column, as the server
   sends it, and the shades of its cells. */

/* What the colours can be. */
export const LAYERS = { account: "account", loss: "loss", idle: "idle", h: "h" };

/* What the legend says, and which parts shades 0, 0.2, ... 1 are. */
export const SCALES = {
  loss: ["loss where it comes from, of the time of all processes", [0, 0.04, 0.16, 0.36, 0.64, 1]],
  idle: ["idle time, of the time of the process", [0, 0.2, 0.4, 0.6, 0.8, 1]],
  h: ["h-relation, of the greatest h of a process", [0, 0.04, 0.16, 0.36, 0.64, 1]],
};

/* Bytes from base 64, in a loop: there are close to a million. */
function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

function byName(texts, decode) {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, decode(text)]));
}

/* How many of some rising numbers are not above a value. */
function until(numbers, value) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The window of an answer. Cells are numbered row by row.

   { columns, rows, low, high, edges, ..., parts (by part of the account the shares of cells, of
     255), columnAt(x), stretch(from, to), amount(layer, cell),
     processes(row),
     hs and durations (of a superstep, by column), mostH, longest_s, shades(layer, most) } */
export function createWindow(answer) {
  const columns = answer.first.length;
  const { rows, block, nprocs, edges } = answer;
  const layers = byName(answer.layers, (text) => new Uint16Array(bytesOf(text).buffer));
  const units = answer.units;

  const heat = {
    ...answer, parts: byName(answer.parts, bytesOf), columns, low: edges[0], high: edges[columns],
    columnAt, stretch, amount, processes, shades,
  };
  heat.hs = Float64Array.from({ length: columns }, (_, column) => h(column));
  heat.durations = Float64Array.from({ length: columns }, (_, column) => duration(column));
  heat.mostH = heat.hs.reduce((most, value) => Math.max(most, value), 0);
  heat.longest_s = heat.durations.reduce((most, value) => Math.max(most, value), 0);

  /* The column at a place on the axis; the nearest one outside the window. */
  function columnAt(x) {
    return Math.min(columns - 1, Math.max(0, until(edges, x) - 1));
  }

  /* The part of the axis that supersteps from `from` to `to`, inclusive, take in the window. */
  function stretch(from, to) {
    const begin = until(answer.last, from - 1);
    const end = until(answer.first, to);
    return end > begin ? [edges[begin], edges[end]] : [0, 0];
  }

  /* Seconds of all processes of a row together, or bytes of h of the one that has most. What is
     lost, all processes lose, and those of the row are its root. */
  function amount(layer, cell) {
    return layers[layer][cell] * units[layer][cell % columns];
  }

  /* The first and the last process of a row. */
  function processes(row) {
    return [row * block, Math.min(nprocs, (row + 1) * block) - 1];
  }

  /* A unit of a column in one of its supersteps. */
  function each(column, unit) {
    return unit[column] / Math.max(answer.supersteps[column], 1e-9);
  }

  /* The greatest h of a process in a superstep of a column, in bytes. */
  function h(column) {
    let most = 0;
    for (let cell = column; cell < rows * columns; cell += columns) {
      most = Math.max(most, layers.h[cell]);
    }
    return most * each(column, units.h);
  }

  /* Seconds from the beginning to the end of a superstep of a column, on average. */
  function duration(column) {
    const taken = answer.finished_s[column] - answer.began_s[column];
    return taken / (answer.last[column] - answer.first[column] + 1);
  }

  /* The shade of each cell from 0 to 1, NaN where nothing took place. The shades of loss and
     h are square roots, as in the graph; idle is a part of the time. */
  function shades(layer, most) {
    const found = new Float32Array(rows * columns);
    const all = new Float64Array(columns);
    for (let cell = 0; cell < found.length; cell += 1) all[cell % columns] += amount("time", cell);
    for (let cell = 0; cell < found.length; cell += 1) {
      const column = cell % columns;
      const time = amount("time", cell);
      if (time === 0 && layers.h[cell] === 0) found[cell] = NaN;
      else if (layer === "h") found[cell] = most > 0 ? Math.sqrt(layers.h[cell] * each(column, units.h) / most) : 0;
      else if (layer === "loss") found[cell] = Math.sqrt(amount("loss", cell) / (all[column] || 1));
      else found[cell] = amount("idle", cell) / (time || 1);
    }
    return found;
  }

  return heat;
}
