/* The panel "machine". */

export function create() {
  return { show() {}, hide() {} };
}
