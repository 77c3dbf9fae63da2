/* The buttons of every page: palette, theme, help. */

import { button } from "./dom.js";
import { openHelp } from "./help.js";
import { shortcut } from "./keys.js";
import { nextTheme, onTheme, palette, setPalette, theme } from "./theme.js";

const THEME_TITLES = { auto: "as the system", light: "light", dark: "dark" };

export function pageButtons() {
  const themeButton = button("◐", nextTheme, { class: "icon", "aria-keyshortcuts": "t" });
  const paletteButton = button("◩", () => setPalette(palette() === "red" ? "safe" : "red"),
    { class: "icon" });
  const tell = () => {
    const themed = `Theme: ${THEME_TITLES[theme()]} (t)`;
    themeButton.title = themed;
    themeButton.setAttribute("aria-label", themed);
    const shades = palette() === "red" ? "Shades in red" : "Shades by brightness, for every eye";
    paletteButton.title = shades;
    paletteButton.setAttribute("aria-label", shades);
  };
  onTheme(tell);
  tell();
  shortcut("t", "Theme: as the system, light, dark", nextTheme);
  shortcut("?", "This help", openHelp);
  return [paletteButton, themeButton, button("?", openHelp,
    { class: "icon", title: "Help (?)", "aria-label": "Help" })];
}
