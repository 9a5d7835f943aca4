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
const say = (text, kind = announced) => {
  saving.textContent = text;
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

// Takes messages and fields from another page of this form, except for fields that were typed in since it was sent.
const show = (page, sent) => {
  const form = page.getElementById("content")?.form;
  if (form?.getAttribute("action") !== pathOf(post.action) || form.elements.status.value !== status.value) {
    return false; // It has other buttons.
  }
  document.querySelectorAll(".notice, .problem, .wrong").forEach((each) => each.remove());
  post.before(...page.querySelectorAll("main > .notice, main > .problem"));
  for (const field of fields.filter((each) => each !== number)) {
    const [now, shown] = [form.elements[field.name].value, document.getElementById(field.name)];
    if (field !== date && field.value === sent[field.name] && field.value !== now) {
      field.value = now; // Only then is the browser's undo lost.
    }
    for (const name of shown ? ["aria-invalid", "aria-describedby"] : []) {
      shown.toggleAttribute(name, false);
      page.getElementById(field.name).hasAttribute(name) && shown.setAttribute(name, page.getElementById(field.name).getAttribute(name));
    }
    const wrong = page.getElementById(`${field.name}-wrong`);
    wrong && (document.getElementById(`${field.name}-hint`) ?? shown).after(wrong);
  }
  document.title = page.title;
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

export { alarm, bar, content, date, fields, pathOf, post, saveButton, say, show, status, time, typed, upload };
