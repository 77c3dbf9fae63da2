/* The paths of the lines between boxes, as SVG path data. */

const BEND = 7;
const TRUNK = 11; // from the left of the caller to the line down to its callees

/* The curve that dot computed: one point, then three for each Bezier curve. */
function curve(points) {
  const [[x, y], ...rest] = points;
  return `M${x},${y}C${rest.map(([px, py]) => `${px},${py}`).join(" ")}`;
}

/* In an outline: from the caller down and to the callee's left or, where the callee stands in
   another column or above, from side to side. */
function elbow(from, to) {
  const trunk = from.x + TRUNK;
  const bottom = from.y + from.h;
  const middle = to.y + to.h / 2;
  if (to.y > bottom && to.x > trunk && to.x < from.x + from.w) {
    return `M${trunk},${bottom}V${middle - BEND}Q${trunk},${middle} ${trunk + BEND},${middle}H${to.x}`;
  }
  const start = from.y + from.h / 2;
  if (to.x >= from.x + from.w) {
    const half = (to.x - from.x - from.w) / 2;
    return `M${from.x + from.w},${start}c${half},0 ${half},${middle - start} ${2 * half},${middle - start}`;
  }
  const far = Math.min(from.x, to.x) - 24;
  return `M${from.x},${start}C${far},${start} ${far},${middle} ${to.x},${middle}`;
}

/* The path of a link between two boxes { x, y, w, h }; points: those of dot, or null. */
export function route(from, to, points) {
  return points ? curve(points) : elbow(from, to);
}
