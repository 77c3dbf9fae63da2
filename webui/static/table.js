/* The view "Table". */

import { notThereYet } from "./placeholder.js";

export function create(host) {
  return notThereYet(host, "Table");
}
