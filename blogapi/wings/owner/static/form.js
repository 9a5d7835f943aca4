// The form of a post: its fields, the bar, the panels beside the text, and messages from other pages.
import { changed, create } from "./owner.js";

const content = document.getElementById("content");
const post = content.form;
const [bar, upload, saveButton] = [".bar", "#upload", "#save"].map((each) => document.querySelector(each));
post.autocomplete = "off"; // After Back or a reload, the copy restores the typed text, so the browser must not.
const fields = [...post.elements].filter((each) => each.name && !each.name.endsWith("_token") && !["file", "submit", "button"].includes(each.type));
const date = fields.find((each) => each.name === "published_at");
// Closing the dialog puts back the date that the form had before, unless one of the form's buttons was pressed.
let dated = "";
post.addEventListener("click", ({ target }) => target.closest("button:not([type], [formtarget])") && (dated = date.value, tidy()), true);
const putBack = () => date.value === dated || changed(Object.assign(date, { value: dated }), date.dispatchEvent(new Event("change")));
document.querySelector("#publishing[popover]")?.addEventListener("beforetoggle", ({ newState }) => (newState === "open" ? (dated = date.value) : putBack()));
const typed = () => Object.fromEntries(fields.map((each) => [each.name, each.value]));

// The bar shows the state. Screen readers announce each outcome once. An alarm stays until its cause is gone.
const [saving, said, alarms] = ["#saving", "#said", ".alarms"].map((each) => bar.querySelector(each));
let announced = "";
const say = (text, kind = announced, ...links) => {
  saving.replaceChildren(text, ...links);
  kind === announced || ([said.textContent, announced] = [text, kind]);
  return saving.firstChild;
};
const alarm = (kind, text = "", ...buttons) => {
  const [old, height] = [document.getElementById(`alarm-${kind}`), bar.offsetHeight];
  if (old?.firstChild.data !== text) {
    old?.remove();
    text && alarms.append(create("p", { id: `alarm-${kind}` }, text, ...buttons));
    scrollBy(0, Math.max(0, Math.min(bar.offsetHeight - height, content.getBoundingClientRect().bottom - bar.getBoundingClientRect().top))); // The caret stays above the bar.
    document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`);
  }
};
const shortcut = (event) => (event.ctrlKey || event.metaKey) && !event.altKey && (event.shiftKey ? "shift+" : "") + event.key.toLowerCase();
// A click on a tool, or on a button in the bar, leaves the focus where it is, so that the writer can go on typing.
document.addEventListener("mousedown", (event) => event.target.closest(".tools, .bar button") && event.preventDefault());
const time = () => new Date().toLocaleTimeString(undefined, { hour: "numeric", minute: "2-digit" });

// The settings or the preview can be open, beside the text or, on a narrow screen, in place of the text.
const sheet = document.querySelector(".sheet");
const isWide = matchMedia("(min-width: 62rem)");
const [panel, settings] = [document.getElementById("panel"), document.getElementById("settings")];
let [top, before] = [0, ""]; // the scroll position of the text, and the panel that was open
const showBeside = (side) => {
  [top, before] = [sheet.dataset.side ? top : scrollY, sheet.dataset.side ?? "settings"];
  sheet.dataset.side = side;
  history.replaceState({ ...history.state, side }, ""); // A reload shows the same panel.
  settings.ariaExpanded = String(side === "settings");
  document.getElementById("preview").ariaPressed = String(side === "preview");
  isWide.matches || side || document.activeElement.closest(".page") || content.focus({ preventScroll: true });
  isWide.matches || scrollTo(0, side ? 0 : top);
};
const toggleBeside = (side) => showBeside(sheet.dataset.side !== side ? side : side === "preview" && isWide.matches ? before : "");
settings.addEventListener("click", () => [toggleBeside("settings"), (localStorage.beside = sheet.dataset.side)]); // for the next form
showBeside(history.state?.side ?? (isWide.matches ? (localStorage.beside ?? "settings") : ""));
const showInvalid = () => (panel.contains(post.querySelector(":invalid")) ? showBeside("settings") : isWide.matches || showBeside(""));
post.addEventListener("invalid", () => showInvalid(document.querySelector(":popover-open")?.hidePopover()), true); // The browser shows a message beside the field.

// If the response to this form is a page with the same form, move the messages of that page to the fields here.
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
  first?.closest("details")?.setAttribute("open", "");
  first?.focus();
};

const { tags, slug, title } = post.elements;
const [known, isNew] = [[...tags.list.options].map((each) => each.value), (name) => !tags.value.toLowerCase().split(/, */).slice(0, -1).includes(name.toLowerCase())];
tags.addEventListener("input", (event, before = tags.value.slice(0, tags.value.lastIndexOf(",") + 1)) => tags.list.replaceChildren(...known.filter(isNew).map((name) => new Option("", `${before}${before && " "}${name}`)))); // Complete the last tag.
// Tidy the slug when the writer leaves it or saves, unless it is in another script: the server refuses that, and says why.
const tidy = () => {
  const plain = slug.value.normalize("NFKD").toLowerCase().replace(/['’\u0300-\u036f]/g, "");
  const value = /^[\0-\x7f]*$/.test(plain) ? (plain.match(/[a-z0-9]+/g)?.join("-") ?? "") : slug.value;
  value === slug.value || changed(Object.assign(slug, { value }));
};
slug.addEventListener("change", tidy);
// The title is a single line that wraps. Enter and Tab lead to the content. Setting the selection makes the following insertion a separate undo step.
title.addEventListener("keydown", (event) => event.key === "Tab" && !event.shiftKey && content.focus(event.preventDefault()));
title.addEventListener("beforeinput", (event) => event.inputType === "insertLineBreak" && content.focus(event.preventDefault()));
title.addEventListener("beforeinput", (event) => /[\r\n]/.test(event.data) && [title.setSelectionRange(title.selectionStart, title.selectionEnd), document.execCommand("insertText", false, event.data.replace(/[\r\n]+/g, " "), event.preventDefault())]);

export { alarm, bar, clear, content, date, fields, isWide, mark, panel, post, saveButton, say, sheet, shortcut, showBeside, time, toggleBeside, typed, upload };
