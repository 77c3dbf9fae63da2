/* The panel "search". */

export function create() {
  return { show() {}, hide() {} };
}
