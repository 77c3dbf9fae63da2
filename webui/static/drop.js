/* Opens trace files that are dropped on the page, or chosen with the button of the header. */

import { Offline, offline } from "./api.js";
import { button, html } from "./dom.js";
import { bytes } from "./format.js";

const MAX_FILE_BYTES = 268435456; // the server accepts no more

/* Sends a file to the server and returns the id of its trace; throws an Error with a sentence. */
async function send(file) {
  if (offline) throw new Offline();
  if (file.size > MAX_FILE_BYTES) {
    throw new Error(`${file.name} has ${bytes(file.size)}: give a trace of more than `
      + `${bytes(MAX_FILE_BYTES)} to bsp view.`);
  }
  let answer = null;
  try {
    answer = await fetch(`traces?name=${encodeURIComponent(file.name)}`, {
      method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file,
    });
  } catch {
    throw new Error("The server does not answer: is bsp view still running?");
  }
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()).id;
}

/* Opens what is dropped on the page. Returns the button that opens a file. */
/** @param {Context} context */
export function createDrop({ store, refresh, say }) {
  const veil = html("div", { class: "drop", hidden: true },
    html("p", {}, "Drop a trace (.bsp) to open it"));
  const chooser = html("input", {
    type: "file", multiple: true, hidden: true, "aria-hidden": "true",
    onchange: () => open([...chooser.files]),
  });
  document.body.append(veil, chooser);
  const holdsFiles = (event) => [...event.dataTransfer?.types ?? []].includes("Files");

  document.addEventListener("dragenter", (event) => {
    if (holdsFiles(event)) veil.hidden = false;
  });
  veil.addEventListener("dragleave", () => { veil.hidden = true; });
  document.addEventListener("dragover", (event) => {
    if (holdsFiles(event)) event.preventDefault(); // else the browser leaves for the file
  });
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    veil.hidden = true;
    open([...event.dataTransfer.files]);
  });

  /* Opens files, and shows the last of them. */
  async function open(files) {
    try {
      let id = null;
      for (const file of files) {
        say(`Opening ${file.name}…`);
        id = await send(file);
      }
      chooser.value = "";
      if (id === null) return;
      await refresh();
      say("");
      store.update({ trace: id, run: 0, node: null, edge: null, zoom: null, brush: null });
    } catch (error) {
      say(error.message);
    }
  }

  return button("Open…", () => chooser.click(), {
    class: "plain-button", title: "Open a trace file; it can be dropped on the page, too",
  });
}
