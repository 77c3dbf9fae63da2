/* What each line of a source file costs: those that ended supersteps, and those that called
   a function that did. */

/* Cost centres by file:line. */
function centresOf({ nodes }) {
  const centres = new Map();
  nodes.forEach(({ kind, file, line }, position) => {
    if (kind !== "cost_centre") return;
    const key = `${file}:${line}`;
    centres.set(key, [...centres.get(key) ?? [], position]);
  });
  return centres;
}

/* The score of what came through the calls of a function from an excerpt: only where one line calls
   it, since what came through each of several lines is not known. */
function calledOnce(model, answer, number, node, path) {
  const { calls } = answer.excerpts[number];
  if (calls.filter(([, nodes]) => nodes.includes(node)).length > 1) return [];
  return model.callers[node].filter((edge) => answer.of[model.edges[edge].from] === number)
    .map((edge) => model.edgeScore(edge, path));
}

/* What the lines of an excerpt cost, by line: { nodes, scores, ends }. nodes: positions of what
   ended there or is called there, scores: of what of it is known; ends: whether supersteps ended
   there. number: position of the excerpt in the answer. */
export function costsOf(model, answer, number, path) {
  const { file, first, lines, calls } = answer.excerpts[number];
  const costs = new Map();
  const centres = centresOf(model);
  for (let line = first; line < first + lines.length; line += 1) {
    const nodes = centres.get(`${file}:${line}`) ?? [];
    const scores = nodes.map((node) => model.score(node, path));
    if (nodes.length) costs.set(line, { nodes, scores, ends: nodes.some((node) => model.nodes[node].count > 0) });
  }
  for (const [line, nodes] of calls) {
    const scores = nodes.flatMap((node) => calledOnce(model, answer, number, node, path));
    const here = costs.get(line) ?? { nodes: [], scores: [], ends: false };
    costs.set(line, here.ends ? { ...here, scores: [...here.scores, ...scores] } : { nodes, scores, ends: false });
  }
  return costs;
}
