/* The panel "processes". */

export function create() {
  return { show() {}, hide() {} };
}
