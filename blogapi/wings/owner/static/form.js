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
const { number, status } = post.elements;
const date = fields.find((each) => each.name === "published_at");
const typed = () => Object.fromEntries(fields.map((each) => [each.name, each.value]));
const pathOf = (address) => new URL(address, location).pathname;

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
let top = 0; // where the text was scrolled to
const showBeside = (side) => {
  const isNarrow = !isWide.matches;
  top = sheet.dataset.side ? top : scrollY;
  sheet.dataset.side = side;
  settings.ariaExpanded = String(side === "settings");
  document.getElementById("preview").ariaPressed = String(side === "preview");
  if (isNarrow && side) {
    scrollTo(0, 0);
  } else if (isNarrow) {
    content.focus({ preventScroll: true });
    scrollTo(0, top);
  }
};
const toggleBeside = (side) => showBeside(sheet.dataset.side === side ? "" : side);
settings.addEventListener("click", () => toggleBeside("settings"));
document.getElementById("preview").before(settings, " ");
showBeside(isWide.matches ? "settings" : "");

// Takes messages and fields from another page of this form, except for fields that were typed in since it was sent.
const show = (page, sent) => {
  const form = page.getElementById("content")?.form;
  if (form?.getAttribute("action") !== pathOf(post.action) || form.elements.status.value !== status.value) {
    return false; // It has other buttons.
  }
  document.querySelectorAll(".notice, .problem, .wrong").forEach((each) => each.remove());
  post.before(...page.querySelectorAll("main > .notice, main > .problem"));
  for (const field of fields.filter((each) => each !== number)) {
    const [shown, other] = [document.getElementById(field.name), page.getElementById(field.name)];
    const now = field === date ? other.dataset.time : form.elements[field.name].value;
    if (field.value === sent[field.name] && field.value !== now) {
      field.value = now; // Only then is the browser's undo lost.
      field === date && shown.dispatchEvent(new CustomEvent("set", { detail: now }));
    }
    for (const name of shown ? ["aria-invalid", "aria-describedby"] : []) {
      shown.toggleAttribute(name, false);
      other.hasAttribute(name) && shown.setAttribute(name, other.getAttribute(name));
    }
    const wrong = page.getElementById(`${field.name}-wrong`);
    wrong && (document.getElementById(`${field.name}-hint`) ?? shown).after(wrong);
  }
  document.title = page.title;
  const invalid = post.querySelector("[aria-invalid]");
  panel.contains(invalid) && showBeside("settings");
  invalid?.closest("[popover]")?.showPopover();
  invalid?.focus();
  return true;
};
// The address and the tags.
const tags = post.elements.tags;
const known = [...tags.list.options].map((each) => each.value);
tags.addEventListener("input", () => {
  const before = tags.value.slice(0, tags.value.lastIndexOf(",") + 1); // Suggest for the last one, which is being typed.
  const given = new Set(before.split(",").map((name) => name.trim().replaceAll('"', "").toLowerCase()));
  const quoted = (name) => (/[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  const others = known.filter((name) => !given.has(name.toLowerCase()));
  tags.list.replaceChildren(...others.map((name) => new Option("", `${before}${before && " "}${quoted(name)}`)));
});

// The title is one line that wraps. Where the browser does not let it grow, this does.
const title = post.elements.title;
const grow = () => {
  title.value = title.value.replace(/[\r\n]+/g, " ");
  title.style.height = "auto";
  title.style.height = `${title.scrollHeight}px`;
};
title.addEventListener("input", () => (CSS.supports("field-sizing", "content") && !/[\r\n]/.test(title.value)) || grow());
CSS.supports("field-sizing", "content") || grow();

export { alarm, bar, content, date, fields, isWide, pathOf, post, saveButton, say, sheet, show, showBeside, status, time, toggleBeside, typed, upload };
