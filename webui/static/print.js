/* Draws views anew for their size on paper, and afterwards for that on the screen. */

function followPrint(isPrinting, draw) {
  return () => {
    document.body.classList.toggle("printing", isPrinting);
    draw();
  };
}

/* Calls draw() before the page is printed, while it has its size on paper, and after it. */
export function onPrint(draw) {
  window.addEventListener("beforeprint", followPrint(true, draw));
  window.addEventListener("afterprint", followPrint(false, draw));
}
