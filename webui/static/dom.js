/* Creates elements without parsing markup: a string is always inserted as text, so that a
   name from a trace cannot become an element. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-") && typeof value === "boolean") {
      element.setAttribute(name, String(value));
    } else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* An HTML element: attributes by name (onclick and its kin are listeners; false, null and
   undefined leave an attribute out, but an aria- attribute is "true" or "false"), then
   children: elements, or strings as text. */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/* A button whose text says what it does. */
export function button(text, onclick, attributes = {}) {
  return html("button", { type: "button", onclick, ...attributes }, text);
}
