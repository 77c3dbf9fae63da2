/* The view "Source". */

import { notThereYet } from "./placeholder.js";

export function create(host) {
  return notThereYet(host, "Source");
}
