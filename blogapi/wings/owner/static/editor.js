// The text of a post's form, behind one small interface. All changes go through `execCommand`, so that the browser's undo
// reverts them. Nothing may be inserted while an input method composes a word (it would double letters): await `settled`.
let composing = false;
document.addEventListener("compositionstart", () => (composing = true), true);
document.addEventListener("compositionend", () => (composing = false), true);

// Chromium takes milliseconds for each line of `insertText`, but hardly any for HTML, of which it takes the text. In
// HTML, the first line break of a <pre> is dropped, and in a <textarea> a last one.
const LONG = 2000;
const insertText = (text) => {
  const html = () => `<pre>\n${new Option(text).innerHTML}${text.endsWith("\n") ? "\n" : ""}</pre>`;
  return (text.length > LONG && document.execCommand("insertHTML", false, html())) || document.execCommand("insertText", false, text);
};
const BLOCK = /^(\s*)([-*+]|\d{1,9}[.)]|>) (\[[ xX]\] )?/; // the start of a list item or a quote

export const openEditor = (area) => {
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
    const isOpen = document.activeElement === area; // It is not while a dialog is open.
    if (from !== to || text) {
      if (!isOpen || !(text ? insertText(text) : document.execCommand("delete"))) {
        area.setRangeText(text, from, to, "end");
        area.dispatchEvent(new Event("input", { bubbles: true }));
      }
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
  const place = (at, stays = false) => { // `stays`: in front of what is typed there
    const kept = { at, stays, end: () => places.delete(kept) };
    places.add(kept);
    return kept;
  };
  let [adding, added] = [0, Promise.resolve()]; // what is being added, such as an upload
  const adds = (work) => {
    adding += 1;
    added = Promise.all([added, work.catch(() => {}).finally(() => (adding -= 1))]);
  };
  area.addEventListener("keydown", (event) => {
    const [at, end] = [area.selectionStart, area.selectionEnd];
    const isPlain = event.key === "Enter" && !event.isComposing && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    const start = isPlain ? area.value.lastIndexOf("\n", at - 1) + 1 : 0;
    const line = isPlain && at === end ? area.value.slice(start, at) : "";
    const [mark, indent, sign, box] = line.match(BLOCK) ?? [];
    if (mark) {
      event.preventDefault(); // Enter continues a list or a quote; at an empty item, it ends it by an empty line.
      const following = /\d/.test(sign) ? `${parseInt(sign, 10) + 1}${sign.at(-1)}` : sign;
      mark === line ? insert("\n", start, at) : insert(`\n${indent}${following} ${box ? "[ ] " : ""}`);
    }
  });
  return {
    area, insert, replace, place, adds,
    added: async () => {
      while (adding) {
        await added;
      }
    },
    get isAdding() { return adding > 0; },
    changed: (listener) => listeners.push(listener),
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
