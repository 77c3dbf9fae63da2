/* Answers to what the page asks: from the saved page itself, or else from the server. */

import { byId } from "./dom.js";

/* A saved page does not contain the answer, and has no server to ask. */
export class Offline extends Error {
  constructor() {
    super("This page was saved to a file, without these data: bsp view shows them.");
  }
}

function embedded() {
  const { answers } = JSON.parse(byId("data").textContent);
  return new Map(Object.entries(answers));
}
const answers = embedded();

/* Whether the page was saved to a file, so that no server answers. */
export const offline = answers.size > 0;

/* The answer at an address, such as "traces/0/runs/0.json".

   Throws Offline where a saved page lacks it, and an Error with the server's sentence. */
export async function get(path) {
  if (answers.has(path)) return answers.get(path);
  if (offline) throw new Offline();
  try {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(await answer.text());
    return await answer.json();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new Error("The server does not answer: is bsp view still running?");
  }
}

/* A path with a query, which leaves out what is null. */
export function withQuery(path, query) {
  const words = Object.entries(query).filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll("%2C", ",")}`);
  return words.length ? `${path}?${words.join("&")}` : path;
}

/* The address of an answer about a run: name "run", "layout", "timeline", ... */
export function address(trace, run, name, query = {}) {
  return withQuery(`traces/${trace}/runs/${run}${name === "run" ? "" : `/${name}`}.json`, query);
}
