/* What the modules of the page hand to each other, for the type checker of `make lint` only. The
   answers are made in webui/services.py and its neighbours, the state in webui/static/store.js. */

type Metric = "comp" | "comm" | "idle" | "h";
/** Over all processes, in seconds or bytes; the pie is left out where it would be too large. */
type Summary = { max: number; avg: number; min: number; pie?: number[] };
type Cost = { count: number; elapsed_s: number; cost: Record<Metric, Summary> };
type GraphNode = Cost & {
  id: string; name: string; short: string; under: string; kind: string; sync: string; file: string; line: number; library: boolean;
};
/** From caller to callee, by position in the nodes. */
type GraphEdge = Cost & { from: number; to: number };
/** Seconds by name ("loss", "time", or a part of the account): of each node or edge, and of paths
    and pies; scales are the seconds of shade 1. */
type Times = {
  nodes: Record<string, number[]>; edges: Record<string, number[]>;
  paths: Record<string, [number, number][]>; pies: Record<number, Record<string, number[]>>;
  shades: Record<string, number[]>; scales: Record<string, number>; before: Record<string, number> | null;
};
/** [node, x, y, width, height], and [caller, callee, edge or null, points of a curve]. */
type Layout = {
  width: number; height: number; nodes: number[][]; links: [number, number, number | null, number[][]][];
};
type Executed = {
  name: string; sync: string; file: string; line: number; centre: number; caller: number; seconds: number;
  parts: Record<string, number>; processes: number[];
};
type Rates = {
  g: number; l: number; rule: "max" | "sum"; ratio: number; source: string; note: string;
  [more: string]: any;
};
type Hosts = { names: string[]; of: number[] } | null;
type Facts = {
  program: string | null; host: string | null; backend: string | null; started: string | null;
  error: string | null; nprocs: number; complete: boolean; repeat: [number, number] | null;
  arguments: string[]; cores: number | null; elapsed_s: number;
  supersteps: number; machine: string | null; hosts: Hosts;
};
type Part = {
  name: string; title: string; seconds: number; processes: number[];
  causes: { node: number; who: number[]; seconds: number }[];
};
type Account = { elapsed_s: number; parts: Part[]; efficiency: Record<string, number> };
type Sentence = { text: string; node: number | null; who: number[]; nodes: number[]; part: string | null; [more: string]: any };
type Verdict = {
  balanced: boolean; sentences: Sentence[]; rest: string | null; threads: string | null; steal: string | null;
};
/** The answer "run". */
type RunAnswer = {
  run: Facts; rates: Rates; machines: Rates[]; root: number; nodes: GraphNode[]; edges: GraphEdge[];
  costs: any; times: Times; account: Account;
  verdict: Verdict; shown: number[]; dropped: string; layouts: Record<string, Layout>;
  executed: Executed[]; faults: [number, number][] | null;
};

type Filters = {
  hidden: string[]; from: string | null; only: string | null; collapsed: string[]; library: boolean;
  all: boolean; unfolded: string[];
};
/** What webui/static/store.js keeps; point and reference are of the page of a node model. */
type State = {
  trace: string; run: number; compared: string | null; view: string; metric: string;
  machine: string | null; g: number | null; l: number | null; speed: number | null;
  node: string | null; edge: string | null; search: string; brush: number[] | null;
  zoom: number[] | null; axis: "superstep" | "time"; layer: string | null; span: number[] | null;
  sort: string | null; filters: Filters; point?: any; reference?: any;
};
type Changes = Partial<Omit<State, "filters">> & { filters?: Partial<Filters> };
type TraceAbout = {
  id: string; name: string; title: string; error: string | null; opening: number; runs: any[];
};
/** What every view and panel is given; webui/static/main.js makes it. */
type Context = {
  store: {
    state: State; update: (changes: Changes, options?: { push?: boolean }) => void;
    subscribe: (fn: (state: State, changed: Set<string>) => void) => void;
  };
  api: {
    get: (path: string) => Promise<any>; offline: boolean; Offline: new () => Error;
    address: (trace: string, run: number, name: string, query?: Record<string, any>) => string;
  };
  loaded: { traces: TraceAbout[]; model: Model | null; library?: boolean };
  query: () => Record<string, any>;
  anew: () => Changes;
  say: (text: string) => void;
  texts?: any; outcome?: any; isLong?: boolean; isSaved?: boolean; changes?: any; aboutNode?: (model: Model, chosen: any, metric: string) => HTMLElement[];
};
type Model = ReturnType<typeof import("../../../webui/static/model.js").createModel>;
/** A view or a part: `changed` has the names of what changed, and is null where it appears. */
type View = {
  show: (model: Model, state: State, changed: Set<string> | null) => void; hide?: () => void;
};
