/* What each node costs and loses by the figures of a Machine: a first version, in which the
   loss of a node is the maximum of its computation less the average. */

export function price(run, rates) {
  const booked = ({ cost }) => {
    const comp = cost.comp.max * rates.ratio;
    return {
      cost: comp + cost.h.max * rates.g, lost: (cost.comp.max - cost.comp.avg) * rates.ratio,
      comp, comm: cost.h.max * rates.g, sync: 0,
    };
  };
  const nodes = run.nodes.map(booked);
  const edges = run.edges.map(booked);
  const { cost, lost } = nodes[run.root];
  return {
    cost, lost, nodes, edges, chain: run.paths["comp-imb"].map(([node]) => node),
    verdict: { balanced: lost === 0, sentences: [] },
  };
}
