/* Names, titles and units. Written by bsplib.webui.terms: change them there. */

/* The losses, and the critical paths of Jarvis et al. (2002). */
/** @type {string[]} */
export const PATHS = ["loss", "sync", "comp-abs", "comp-imb", "comp-rel", "comp-weighted", "comm-abs", "comm-imb", "comm-rel", "comm-weighted", "idle-abs", "idle-imb", "idle-rel", "idle-weighted", "h-abs", "h-imb", "h-rel", "h-weighted"];

/* What the critical paths are about. */
/** @type {Record<string, string>} */
export const METRICS = {"comp": "computation", "comm": "communication", "idle": "idle time", "h": "h-relation"};

/* What they take of it. */
/** @type {Record<string, string>} */
export const MEASURES = {"abs": "absolute", "imb": "absolute imbalance", "rel": "relative imbalance", "weighted": "weighted imbalance"};

/* The same as heads of columns. */
/** @type {Record<string, string>} */
export const MEASURE_NAMES = {"abs": "maximum", "imb": "imbalance", "rel": "relative", "weighted": "weighted"};

/* The parts of the account, in their order. */
/** @type {string[]} */
export const PARTS = ["useful", "imbalance", "transfers", "transfer_imbalance", "latency", "blocked", "core", "recording", "ends", "unexplained"];

/* Those that are loss. */
/** @type {string[]} */
export const LOST = ["imbalance", "transfer_imbalance", "blocked", "core"];

/* What they are called. */
/** @type {Record<string, string>} */
export const PART_TITLES = {"useful": "useful computation", "imbalance": "imbalance of computation", "transfers": "transfers (g h)", "transfer_imbalance": "imbalance of transfers", "latency": "superstep latency (l)", "blocked": "blocked", "core": "waiting for a core", "recording": "recording", "ends": "start and end", "unexplained": "unexplained"};

/* The same in narrow places, where titles are longer. */
/** @type {Record<string, string>} */
export const NARROW = {"useful": "useful", "imbalance": "imbalance", "transfers": "transfers", "transfer_imbalance": "uneven", "latency": "latency", "core": "no core", "ends": "ends"};

/* The parts of the seconds of samples. */
/** @type {Record<string, string>} */
export const SAMPLED = {"computing": "computing", "calls": "in calls", "waiting": "waiting", "blocked": "blocked", "no_core": "without a core"};

/* Units of times, in seconds. */
/** @type {[number, string][]} */
export const TIME_UNITS = [[1.0, "s"], [0.001, "ms"], [1e-06, "µs"], [1e-09, "ns"]];

/* Units of sizes, in bytes. */
/** @type {[number, string][]} */
export const SIZE_UNITS = [[1000000000000.0, "TB"], [1000000000.0, "GB"], [1000000.0, "MB"], [1000.0, "kB"]];
