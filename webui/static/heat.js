/* A window of the heat map: what each row of processes did in each column, as the server
   sends it, and the shades of its cells. */

export const LAYERS = {
  account: "what the time was used for", loss: "loss", comp: "computation", comm: "communication", idle: "idle",
  waiting: "waiting for a core", h: "h",
};
/* The names for the choice of colours. */
export const SHORT = { ...LAYERS, account: "account", waiting: "waiting" };
export const TIMES = ["comp", "comm", "idle", "waiting"];

/* Texts of the legend at shades 0, 0.2, ... 1, and what they are parts of. */
export const SCALES = {
  loss: [[0, 0.04, 0.16, 0.36, 0.64, 1], "of the time of the superstep"],
  h: [[0, 0.04, 0.16, 0.36, 0.64, 1], "of the greatest h of a process"],
  other: [[0, 0.2, 0.4, 0.6, 0.8, 1], "of the time of the process"],
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
     hs and durations (of a superstep, by column), mostH, longest_s, loss(cell, rates),
     shades(layer, rates, most) } */
export function createWindow(answer) {
  const columns = answer.first.length;
  const { rows, block, nprocs, edges } = answer;
  const layers = byName(answer.layers, (text) => new Uint16Array(bytesOf(text).buffer));
  const units = answer.units;

  const heat = {
    ...answer, parts: byName(answer.parts, bytesOf), columns, low: edges[0], high: edges[columns],
    columnAt, stretch, amount, processes, shades, loss,
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

  /* Seconds of all processes of a row together, or bytes of h of the one that has most. */
  function amount(layer, cell) {
    const unit = layer === "h" || layer === "over_h" ? units.h : units.time;
    return layers[layer][cell] * unit[cell % columns];
  }

  /* The first and the last process of a row. */
  function processes(row) {
    return [row * block, Math.min(nprocs, (row + 1) * block) - 1];
  }

  function size(row) {
    const [first, last] = processes(row);
    return last - first + 1;
  }

  /* The greatest h of a process in a superstep of a column, in bytes. */
  function h(column) {
    let most = 0;
    for (let cell = column; cell < rows * columns; cell += columns) {
      most = Math.max(most, layers.h[cell]);
    }
    return most * units.h[column] / Math.max(answer.supersteps[column], 1e-9);
  }

  /* Seconds from the beginning to the end of a superstep of a column, on average. */
  function duration(column) {
    const taken = answer.finished_s[column] - answer.began_s[column];
    return taken / (answer.last[column] - answer.first[column] + 1);
  }

  /* Seconds for which a process makes the others of its superstep wait: what it computes
     above their mean, and the price of its h above their mean. */
  function loss(cell, rates) {
    return rates.ratio * amount("over", cell) + rates.g * amount("over_h", cell);
  }

  /* The shade of each cell from 0 to 1, NaN where nothing took place. The shades of loss and
     h are square roots, as in the graph, and those of the other layers parts of the time. */
  function shades(layer, rates, most) {
    const found = new Float32Array(rows * columns);
    const { comp, comm, idle, waiting } = layers;
    const of = shading(layer, rates, most);
    for (let row = 0, cell = 0; row < rows; row += 1) {
      const share = size(row);
      for (let column = 0; column < columns; column += 1, cell += 1) {
        const time = comp[cell] + comm[cell] + idle[cell] + waiting[cell];
        found[cell] = time === 0 && layers.h[cell] === 0 ? NaN : of(cell, column, time, share);
      }
    }
    return found;
  }

  /* The shade of a cell by its column, its time in units, and the processes of its row. */
  function shading(layer, rates, most) {
    const { h, over, over_h: overH } = layers;
    if (layer === "h") {
      return (cell, column) => (most > 0
        ? Math.sqrt(h[cell] * units.h[column] / Math.max(answer.supersteps[column], 1e-9) / most) : 0);
    }
    if (layer !== "loss") return (cell, _, time) => (time > 0 ? layers[layer][cell] / time : 0);
    return (cell, column, time, share) => {
      const lost = rates.ratio * over[cell] * units.time[column] + rates.g * overH[cell] * units.h[column];
      const mean = time * units.time[column] * rates.ratio / share;
      return lost > 0 ? Math.sqrt(mean > 0 ? lost / mean : 1) : 0;
    };
  }

  return heat;
}
