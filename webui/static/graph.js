/* The view "Graph". */

import { notThereYet } from "./placeholder.js";

export function create(host) {
  return notThereYet(host, "Graph");
}
