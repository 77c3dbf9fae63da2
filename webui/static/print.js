/* Prints a view on one page: draws it for its size on paper, and afterwards for the screen. */

const HEIGHT = 690; // pixels of a landscape page within its margins, of A4 as of letter
const drawings = [];

function follow(isPrinting) {
  const { body } = document;
  body.style.zoom = "";
  body.classList.toggle("printing", isPrinting);
  for (const draw of drawings) draw(isPrinting);
  if (isPrinting) body.style.zoom = String(Math.min(1, HEIGHT / body.getBoundingClientRect().height));
}

window.addEventListener("beforeprint", () => follow(true));
window.addEventListener("afterprint", () => follow(false));

/* Calls draw(isPrinting) before the page is printed, while it has its size on paper, and after it. */
export function onPrint(draw) {
  drawings.push(draw);
}
