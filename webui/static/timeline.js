/* The view "Timeline". */

import { notThereYet } from "./placeholder.js";

export function create(host) {
  return notThereYet(host, "Timeline");
}
