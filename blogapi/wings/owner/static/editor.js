// A small interface to the text field of a post's form. It makes all changes with `execCommand`, so that the browser can
// undo them. Await `settled` before an insertion: while an input method composes a word, an insertion doubles letters.
import { throttled } from "./owner.js";

let composing = false;
document.addEventListener("compositionstart", () => (composing = true), true);
document.addEventListener("compositionend", () => (composing = false), true);

// In Chromium, `insertText` takes milliseconds for each line. `insertHTML` is fast, and inserts the text of the HTML. A
// <pre> drops its first line break, and a <textarea> drops its last one, so the HTML has an extra one in these places.
const insertText = (text) => {
  const html = () => `<pre>\n${new Option(text).innerHTML}${text.endsWith("\n") ? "\n" : ""}</pre>`;
  return (text.length > 2000 && document.execCommand("insertHTML", false, html())) || document.execCommand("insertText", false, text);
};
const BLOCK = /^(\s*)([-*+]|\d{1,9}[.)]|>) (\[[ xX]\] )?/; // the start of a list item or a quote

export const openEditor = (area, isAdded) => {
  const [listeners, places] = [[], new Set()];
  let length = area.textLength;
  area.addEventListener("input", () => {
    const [end, added] = [area.selectionEnd, area.textLength - length];
    const start = Math.min(end, end - added);
    length += added;
    places.forEach((each) => each.at >= start + each.stays && (each.at = Math.max(each.at + added, start)));
    listeners.forEach((listener) => listener());
  });
  const insert = (text, from = area.selectionStart, to = area.selectionEnd, selected = [from + text.length]) => {
    area.focus({ preventScroll: true });
    area.setSelectionRange(from, to);
    const isOpen = document.activeElement === area; // false while a dialog is open
    if ((from !== to || text) && !(isOpen && (text ? insertText(text) : document.execCommand("delete")))) {
      area.setRangeText(text, from, to, "end");
      area.dispatchEvent(new Event("input", { bubbles: true }));
    }
    area.setSelectionRange(selected[0], selected.at(-1));
  };
  const replace = (text, from, to = from) => {
    const [focused, top] = [document.activeElement, [scrollX, scrollY, area.scrollTop]];
    const moved = (at) => (at > from ? at + text.length - (to - from) : at);
    insert(text, from, to, [moved(area.selectionStart), moved(area.selectionEnd)]);
    focused !== area && focused?.focus({ preventScroll: true });
    [scrollTo(top[0], top[1]), (area.scrollTop = top[2])];
  };
  const select = (from, to) => { // The new focus makes browsers scroll to the selection.
    area.blur();
    area.setSelectionRange(from, to);
    area.focus();
  };
  const addParagraph = (markdown, at) => { // inserted after the line that contains `at`
    const text = area.value;
    const end = `${text}\n`.indexOf("\n", at);
    const [before, after] = [text.slice(0, end), text.slice(end)];
    const start = /(^|\n)$/.test(before) ? (/(^|\n\n)$/.test(before) || before === "\n" ? "" : "\n") : "\n\n";
    const rest = after.startsWith("\n\n") ? "" : after ? "\n" : "\n\n";
    const isHere = document.activeElement === area && area.selectionStart === end && area.selectionEnd === end && !after;
    (isHere ? insert : replace)(start + markdown + rest, end, end);
  };
  const place = (at, stays = false) => { // with `stays`, text typed at the place goes after it
    const kept = { at, stays, end: () => places.delete(kept) };
    places.add(kept);
    return kept;
  };
  const adding = new Set(); // unfinished work that will add text, such as uploads
  const adds = (work) => adding.add(work) && work.finally(() => adding.delete(work) && isAdded());
  area.addEventListener("keydown", (event) => {
    const [at, end] = [area.selectionStart, area.selectionEnd];
    const isPlain = event.key === "Enter" && !event.isComposing && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    const start = isPlain ? area.value.lastIndexOf("\n", at - 1) + 1 : 0;
    const line = isPlain && at === end ? area.value.slice(start, at) : "";
    const [mark, indent, sign, box] = line.match(BLOCK) ?? [];
    if (mark) {
      event.preventDefault(); // Enter continues a list or a quote; at an empty item, it ends it.
      const following = /\d/.test(sign) ? `${parseInt(sign, 10) + 1}${sign.at(-1)}` : sign;
      mark === line ? insert("\n", start, at) : insert(`\n${indent}${following} ${box ? "[ ] " : ""}`);
    }
  });
  return {
    area, insert, replace, select, addParagraph, place, adds,
    get isAdding() { return adding.size > 0; },
    changed: (listener) => listeners.push(throttled(listener, () => 500 + area.textLength / 200)),
    get doc() { return area.value; },
    get selection() { return [area.selectionStart, area.selectionEnd]; },
    get composing() { return composing; },
    settled: async () => {
      while (composing) {
        await new Promise((done) => document.addEventListener("compositionend", () => setTimeout(done), { once: true }));
      }
    },
  };
};
