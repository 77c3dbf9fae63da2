/* How processes are named: by pid, and by host where the run had several. `hosts` is that of a
   run: { names, of (position among the names, by pid) }, or null. */

import { integer } from "./format.js";

const MOST_HOSTS = 3; // more are counted

/* The hosts of some processes in brackets; empty where the run had one host. */
export function onHosts(hosts, pids) {
  if (!hosts) return "";
  const found = [...new Set(pids.map((pid) => hosts.names[hosts.of[pid]]))];
  return ` (${found.length > MOST_HOSTS ? `${integer(found.length)} hosts` : found.join(", ")})`;
}

export function processName(hosts, pid) {
  return `process ${integer(pid)}${onHosts(hosts, [pid])}`;
}

/* The processes from one pid to another. */
export function processRange(hosts, first, last) {
  if (first === last) return processName(hosts, first);
  const pids = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  return `processes ${integer(first)} to ${integer(last)}${onHosts(hosts, pids)}`;
}
