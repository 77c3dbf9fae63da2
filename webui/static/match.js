/* Which nodes a text of the search means. */

import { label, place } from "./format.js";

const EXPRESSION = /^\/(.+)\/(i?)$/s;
const LINE = /:\d+$/;

/* A function that tells whether a node is meant; throws an Error with a sentence. */
function testOf(text) {
  const expression = EXPRESSION.exec(text);
  if (expression !== null) {
    const [, source, flags] = expression;
    const compiled = compiledOf(source, flags);
    return (node) => compiled.test(label(node)) || compiled.test(place(node));
  }
  const wanted = text.toLowerCase();
  const atLine = LINE.test(text);
  return (node) => {
    const where = place(node).toLowerCase();
    return label(node).toLowerCase().includes(wanted)
      || (atLine ? where.endsWith(wanted) : where.includes(wanted));
  };
}

function compiledOf(source, flags) {
  try {
    return new RegExp(source, flags);
  } catch (error) {
    const why = error.message.split(": ").at(-1);
    throw new Error(`/${source}/ is no regular expression: ${why}.`);
  }
}

/* The positions of the nodes whose name, or file:line, contains a text or matches
   /expression/; null where there is no text. Returns { found, error }: error is a sentence,
   or empty. */
export function search(nodes, text) {
  const wanted = text.trim();
  if (wanted === "") return { found: null, error: "" };
  try {
    const isMeant = testOf(wanted);
    return { found: nodes.flatMap((node, position) => (isMeant(node) ? [position] : [])), error: "" };
  } catch (error) {
    return { found: [], error: error.message };
  }
}
