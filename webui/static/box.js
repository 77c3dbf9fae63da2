/* The inside of a node's box, at scale 1: where name, value and bars stand, and how a name is
   made to fit. */

export const HEIGHT = 56;
export const INSET = 10;
export const NAME_Y = 17;
export const UNDER_Y = 31;
export const VALUE_Y = 49;
const BARS_HEIGHT = 14;
export const LETTER_PX = 12;
export const RADIUS = 5;
const BADGE_WIDTH = 24; // at the end of the first line
const NARROWEST = 104;
const WIDEST = 236;
const MOST_LETTERS = 32;
const VALUE_ROOM = 58;
const BAR_WIDTH = 5;
const FAR_LETTER_PX = 24;

const family = () => getComputedStyle(document.body).fontFamily;
let context = null;

/* The width of a text in pixels, in the font of names or in that of what stands under them. */
function textWidth(text, isName) {
  context ??= document.createElement("canvas").getContext("2d");
  context.font = `${isName ? "600 " : ""}${LETTER_PX}px ${family()}`;
  return context.measureText(text).width;
}

/* A name that ends with an ellipsis if it is very long, never cut in the middle. */
export function shortName(name) {
  const letters = Array.from(name);
  return letters.length > MOST_LETTERS ? `${letters.slice(0, MOST_LETTERS - 1).join("")}…` : name;
}

/* The width of a node's box; webui/layout.py estimates it by the same limits. */
export function boxWidth(name, under) {
  const width = Math.max(textWidth(shortName(name), true), textWidth(shortName(under), false)) + 2 * INSET;
  return Math.min(WIDEST, Math.max(NARROWEST, Math.round(width)));
}

/* The width that a name may take, or what stands under it, if it would take more; else null. */
export function squeezed(text, width, { isName = true, hasBadge = false } = {}) {
  const room = width - 2 * INSET - (hasBadge ? BADGE_WIDTH : 0);
  return textWidth(text, isName) > room ? room : null;
}

/* The size of letters of a name alone in its box, for a small scale. */
export function farLetters(name, width) {
  const natural = textWidth(name, true) || 1;
  return Math.min(FAR_LETTER_PX, LETTER_PX * (width - INSET) / natural);
}

/* The bars in a box as rectangles [x, y, width, height], at the right of its second line. */
export function barRectangles(box, heights) {
  const room = Math.min(heights.length * BAR_WIDTH, box.w - 2 * INSET - VALUE_ROOM);
  const step = room / heights.length;
  const left = box.x + box.w - INSET - room;
  const gap = step > 3 ? 1 : 0;
  return heights.map((height, i) => {
    const tall = Math.max(1, height * BARS_HEIGHT);
    return [left + i * step, box.y + VALUE_Y - tall + 1, step - gap, tall];
  });
}
