/* The view "Compare". */

import { notThereYet } from "./placeholder.js";

export function create(host) {
  return notThereYet(host, "Compare");
}
