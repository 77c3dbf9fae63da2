/* The view "Traffic". */

import { notThereYet } from "./placeholder.js";

export function create(host) {
  return notThereYet(host, "Traffic");
}
