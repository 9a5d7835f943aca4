// The form of a post as the page shows it: its fields, the bar, and what another page of it says.
import { create } from "./owner.js";

const content = document.getElementById("content");
const post = content.form;
const upload = document.getElementById("upload");
const bar = document.querySelector(".bar");
const saveButton = document.getElementById("save");
post.autocomplete = "off"; // After Back or a reload, the copy restores what was typed.
const isField = (each) => each.name && !each.name.endsWith("_token") && !["file", "submit", "button"].includes(each.type);
const fields = [...post.elements].filter(isField);
const date = fields.find((each) => each.name === "published_at");
const typed = () => Object.fromEntries(fields.map((each) => [each.name, each.value]));

// The bar shows the state, and screen readers hear each outcome once. Alarms stay until they are over.
const [saving, said] = [document.getElementById("saving"), document.getElementById("said")];
const alarms = create("div", { className: "alarms" }, { role: "alert" });
bar.prepend(alarms);
let announced = "";
const say = (text, kind = announced, ...links) => {
  saving.replaceChildren(text, ...links);
  kind === announced || ([said.textContent, announced] = [text, kind]);
};
const alarm = (kind, text = "", ...buttons) => {
  const old = alarms.querySelector(`[data-kind=${kind}]`);
  if (old?.dataset.text !== text) {
    old?.remove();
    text && alarms.append(create("p", {}, { "data-kind": kind, "data-text": text }));
    text && alarms.lastChild.append(text, ...buttons);
  }
};
const time = () => new Date().toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

// Beside the text, or on a narrow screen in its place, stand the settings, the preview or nothing.
const sheet = document.querySelector(".sheet");
const isWide = matchMedia("(min-width: 62rem)");
const [panel, settings] = [document.getElementById("panel"), create("button", { type: "button", textContent: "Settings" }, { "aria-controls": "panel" })];
let [top, before] = [0, ""]; // where the text was scrolled to, and what stood beside it
const showBeside = (side) => {
  [top, before] = [sheet.dataset.side ? top : scrollY, sheet.dataset.side];
  sheet.dataset.side = side;
  settings.ariaExpanded = String(side === "settings");
  document.getElementById("preview").ariaPressed = String(side === "preview");
  if (!isWide.matches) {
    side || content.focus({ preventScroll: true });
    scrollTo(0, side ? 0 : top);
  }
};
const toggleBeside = (side) => showBeside(sheet.dataset.side !== side ? side : side === "preview" && isWide.matches ? before : "");
settings.addEventListener("click", () => toggleBeside("settings"));
document.getElementById("preview").before(settings, " ");
showBeside(isWide.matches ? "settings" : "");

// Messages: those of another page of this form, beside their fields.
const clear = () => {
  document.querySelectorAll(".notice, .problem, .wrong").forEach((each) => each.remove());
  document.querySelectorAll("[aria-invalid]").forEach((each) => each.removeAttribute("aria-invalid"));
};
const mark = (page) => {
  clear();
  post.before(...page.querySelectorAll("main > .problem"));
  for (const wrong of page.querySelectorAll(".wrong")) {
    const field = document.getElementById(wrong.id.replace(/-wrong$/, ""));
    field.setAttribute("aria-invalid", "true");
    field.after(wrong);
  }
  const first = post.querySelector("[aria-invalid]");
  panel.contains(first) && showBeside("settings");
  first?.closest("[popover]")?.showPopover();
  first?.focus();
  first?.scrollIntoView({ block: "center" });
};

// The tags.
const tags = post.elements.tags;
const known = [...tags.list.options].map((each) => each.value);
tags.addEventListener("input", () => {
  const before = tags.value.slice(0, tags.value.lastIndexOf(",") + 1); // Suggest for the last one, which is being typed.
  const given = new Set(before.split(",").map((name) => name.trim().replaceAll('"', "").toLowerCase()));
  const quoted = (name) => (/[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  const others = known.filter((name) => !given.has(name.toLowerCase()));
  tags.list.replaceChildren(...others.map((name) => new Option("", `${before}${before && " "}${quoted(name)}`)));
});

// The title is one line, which wraps.
const joinLines = ({ target }) => /[\r\n]/.test(target.value) && (target.value = target.value.replace(/[\r\n]+/g, " "));
post.elements.title.addEventListener("input", joinLines);

export { alarm, bar, clear, content, date, fields, isWide, mark, post, saveButton, say, sheet, showBeside, time, toggleBeside, typed, upload };
