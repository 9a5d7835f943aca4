// A small interface to the text field of a post's form. It makes all changes with `execCommand`, so that the browser can undo them. Await `settled` before an insertion: while an input method composes a word, an insertion doubles letters.
import { changed, throttled } from "./owner.js";

let composing = false;
document.addEventListener("compositionstart", () => (composing = true), true);
document.addEventListener("compositionend", () => (composing = false), true);

// In Chromium, `insertText` takes milliseconds for each line. A <pre> drops its first line break, a <textarea> its last.
const asHtml = (text) => `<pre>\n${new Option(text).innerHTML}${text.endsWith("\n") ? "\n" : ""}</pre>`;
const insertText = (text) => (text.length > 2000 && document.execCommand("insertHTML", false, asHtml(text))) || document.execCommand("insertText", false, text);

export const openEditor = (area, isAdded) => {
  const [places, undone] = [[], new Map()]; // undone: the writer's selection before a change, by the selection that undoing it leaves
  const where = (from = area.selectionStart, to = area.selectionEnd) => `${from} ${to} ${area.textLength}`;
  let length = area.textLength;
  area.addEventListener("input", ({ inputType }) => {
    inputType === "historyUndo" && area.setSelectionRange(...(undone.get(where()) ?? [area.selectionEnd, area.selectionEnd])); // Browsers select the restored text, which the next key would replace.
    const [end, added] = [area.selectionEnd, area.textLength - length];
    const start = Math.min(end, end - added);
    length += added;
    places.forEach((each) => each.at > start && (each.at = Math.max(each.at + added, start)));
    added > 2000 && setTimeout(() => document.activeElement === area && select(area.selectionStart, area.selectionEnd)); // Browsers do not scroll to the end of a long paste.
  });
  const insert = (text, from = area.selectionStart, to = area.selectionEnd, selected = [from + text.length]) => {
    area.focus({ preventScroll: true });
    undone.set(where(from, to), [area.selectionStart, area.selectionEnd]);
    area.setSelectionRange(from, to);
    const isDone = (from === to && !text) || (document.activeElement === area && (text ? insertText(text) : document.execCommand("delete")));
    isDone || changed(area, area.setRangeText(text, from, to, "end")); // in a dialog
    area.setSelectionRange(selected[0], selected.at(-1));
  };
  const insertElsewhere = (text, place) => { // The focus, the selection and the lines around it stay where they are.
    const [focused, top, inner, height, length] = [document.activeElement, scrollY, area.scrollTop, area.offsetHeight, area.scrollHeight];
    const selected = [area.selectionStart, area.selectionEnd].map((at) => (at > place ? at + text.length : at));
    insert(text, place, place, selected);
    focused !== area && focused?.focus({ preventScroll: true });
    const [grown, all] = selected[0] > place ? [area.offsetHeight - height, area.scrollHeight - length] : [0, 0];
    [scrollTo(scrollX, top + grown), (area.scrollTop = inner + all - grown)];
  };
  const select = (from, to) => { // The new focus makes browsers scroll to the selection.
    area.blur();
    area.setSelectionRange(from, to);
    area.focus();
  };
  // A place marks where later text will go. Text typed there in the meantime ends up after that text.
  const place = () => places[places.push({ at: area.selectionEnd }) - 1];
  const isAt = (kept) => document.activeElement === area && [area.selectionStart, area.selectionEnd].every((each) => each === kept.at);
  const fill = (kept, text, at = kept.at) => {
    const isHere = isAt(kept);
    const [{ style }, height] = [document.documentElement, area.offsetHeight];
    isHere ? insert(text, at, at) : insertElsewhere(text, at);
    const [, ...later] = places.splice(places.indexOf(kept));
    places.push(...later); // Texts for the same place keep the order in which the writer asked for them.
    later.filter((each) => each.at >= kept.at && each.at <= at).forEach((each) => (each.at = at + text.length));
    style.setProperty("--below", `${at === kept.at ? 0 : area.offsetHeight - height}px`); // Firefox scrolls once, to the caret, and only later.
    isHere && [at + text.length, at === kept.at ? at + text.length : kept.at].forEach((each) => select(each, each)); // scrolls to the text, then to the caret
    setTimeout(() => style.removeProperty("--below"), 200);
  };
  // Add a block before the line that starts at the place, or after the line around it. Separate it from other text by empty lines. If the caret is there, leave it in a new paragraph. Return where the block starts.
  const addBlock = (markdown, kept = place(), begins = isAt(kept), at = /(^|\n)$/.test(area.value.slice(0, kept.at)) ? kept.at : `${area.value}\n`.indexOf("\n", kept.at)) => {
    const [ahead, behind] = [area.value.slice(0, at), area.value.slice(at)];
    const gap = ahead.trim() && "\n\n".slice(/\n{0,2}$/.exec(ahead)[0].length);
    const end = begins && at === kept.at ? "\n\n" : behind.trim() && "\n\n".slice(/^\n{0,2}/.exec(behind)[0].length);
    fill(kept, gap + markdown + end, at);
    return at + gap.length;
  };
  const settled = () => composing && new Promise((done) => document.addEventListener("compositionend", () => setTimeout(() => done(settled())), { once: true }));
  const adding = new Set(); // unfinished work that will add text, such as uploads
  const adds = (work) => adding.add(work) && work.finally(() => adding.delete(work) && isAdded());
  return {
    area, insert, select, addBlock, place, isAt, fill, adds, settled,
    get isAdding() { return adding.size > 0; },
    changed: (listener) => listener(area.addEventListener("input", throttled(listener, () => 500 + area.textLength / 200))), // now and after changes
    get doc() { return area.value; },
    get selection() { return [area.selectionStart, area.selectionEnd]; },
  };
};
