// What tests do with the owner's pages in a real browser, and what they read there: see Window.run.

const content = document.getElementById("content");
const all = (selector) => [...document.querySelectorAll(selector)];

// Any page

function withText(text) {
  const isWanted = (each) => each.innerText.trim().replace(/\s+/g, " ") === text && each.checkVisibility();
  return all("main button, main summary, header button, a").filter(isWanted);
}

// Scroll a control into view, and return whether it leads to another page
function centerAndTellIfItLeaves(control) {
  control.scrollIntoView({ block: "center" });
  return control.matches("a, button:not([type=button], [type=reset], #save, #preview)");
}

function areImagesShown() {
  return all("main img").every((each) => each.complete && each.naturalWidth > 0);
}

async function violations(only) {
  const options = { ...only, resultTypes: ["violations"], rules: { "target-size": { enabled: true } } };
  return (await axe.run(options)).violations.map((each) => each.id);
}

// Controls smaller than 24 pixels (except links in running text), and those whose border contrast is below 3:1
function poorControls() {
  const size = (each) => Math.min(each.getBoundingClientRect().width, each.getBoundingClientRect().height);
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (color) => {
    const [red, green, blue] = color.match(/[\d.]+/g).map((part) => linear(part / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const clear = "rgba(0, 0, 0, 0)";
  const behind = ({ parentElement }) => {
    const color = getComputedStyle(parentElement).backgroundColor;
    return color === clear ? behind(parentElement) : color;
  };
  const isFaint = (each) => {
    const border = getComputedStyle(each).borderTopColor;
    return border !== clear && Math.abs(Math.log(light(border) / light(behind(each)))) < Math.log(3);
  };
  const isSmall = (each) => Math.max(...[each, ...(each.labels ?? [])].map(size)) < 23.9;
  const isShown = (each) => each.checkVisibility() && !each.disabled;
  const bordered = "button, summary, .button, select, textarea, input:not([type=checkbox], [type=radio])";
  const small = all(`${bordered}, input, a[href]:not(.skip, p a, sup a)`).filter(isShown).filter(isSmall);
  const faint = all(bordered).filter(isShown).filter(isFaint);
  return [...small, ...faint].map((each) => each.outerHTML);
}

// The form of a post

function select(start, end = start) {
  content.focus();
  content.setSelectionRange(start, end); // -1 stands for the end.
}

function putCaretBefore(words) {
  select(content.value.indexOf(words));
  content.blur();
  content.focus(); // scrolls to it
}

function selected() {
  const text = content.value.slice(content.selectionStart, content.selectionEnd);
  return [text, scrollY > 0 || content.scrollTop > 0];
}

// Whether these words of the preview are in view
function isInPreview(words) {
  const [texts, range] = [document.createTreeWalker(document.querySelector(".preview"), NodeFilter.SHOW_TEXT), new Range()];
  while (texts.nextNode()) {
    const at = texts.currentNode.data.indexOf(words);
    if (at >= 0) [range.setStart(texts.currentNode, at), range.setEnd(texts.currentNode, at + words.length)];
  }
  const { top, bottom } = range.getBoundingClientRect();
  return !range.collapsed && top >= 0 && bottom <= innerHeight;
}

// By how many pixels the paragraph of the preview that is in view beside the middle of the text is above or below it
function unevenness() {
  const [{ left, top }, middle] = [content.getBoundingClientRect(), innerHeight / 2];
  const at = Math.max(top + 20, middle);
  const [words] = /\S.*/.exec(content.value.slice(document.caretPositionFromPoint(left + 1, at).offset));
  const block = all(".preview p").find((each) => each.textContent === words);
  return Math.abs(block.getBoundingClientRect().top - at);
}

// How many controls of the form that are in view have the preview in their middle
function countCovered() {
  const controls = all("main :is(input, textarea, button, .hint)").filter((each) => each.checkVisibility());
  return controls.filter((each) => {
    if (each === content) return false;
    each.scrollIntoView({ block: "center" });
    const { left, top, width, height } = each.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2)?.closest(".preview");
  }).length;
}

function changedLines() {
  return all(".removed, .added").map((each) => each.textContent.trim());
}

function watchAnnouncements() {
  window.texts = [];
  for (const each of all("#said, .alarms")) {
    const note = () => each.textContent && texts.push(each.textContent);
    new MutationObserver(note).observe(each, { childList: true });
  }
  window.kept = 0;
  const count = ({ target }) => (kept += target.textContent.startsWith("Kept"));
  const saving = document.getElementById("saving");
  new MutationObserver((changes) => changes.forEach(count)).observe(saving, { childList: true });
}

// Paste and drop, because a test cannot put files on the clipboard; return whether the page leaves it to the browser

function send(kind, data) {
  const { left, top } = content.getBoundingClientRect();
  const spot = { clientX: left + 20, clientY: top + 20 }; // in the first line
  const options = { ...spot, bubbles: true, cancelable: true, clipboardData: data, dataTransfer: data };
  content.focus();
  return content.dispatchEvent(kind === "paste" ? new ClipboardEvent(kind, options) : new DragEvent(kind, options));
}

function paste(text, html) {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  if (html) data.setData("text/html", html);
  return send("paste", data);
}

function pressPasteAsText() {
  content.dispatchEvent(new KeyboardEvent("keydown", { key: "V", ctrlKey: true, shiftKey: true }));
}

function rememberChosenFile() {
  document.getElementById("file").addEventListener("input", ({ target }) => (window.chosen = target.files[0]));
}

function sendChosenFile(kind, times = 1) {
  const data = new DataTransfer();
  for (let number = 0; number < times; number++) data.items.add(chosen);
  return send(kind, data);
}

// The network and the storage

const half = () => new Promise((done) => setTimeout(done, 500));

function wrapFetch(wrapper) {
  const real = fetch;
  window.fetch = (address, options) => wrapper(() => real(address, options), String(address), options?.method);
}

function breakFetch(answer) {
  window.real = fetch;
  window.fetch = async () => new Response(answer, { status: 502 });
}

function loseAnswers() {
  window.real = fetch;
  wrapFetch((go, address, method) => (method === "POST" ? go().then(() => Promise.reject()) : go()));
}

function hold(isHeld) {
  const { promise, resolve } = Promise.withResolvers();
  window.release = resolve;
  wrapFetch((go, address, method) => {
    window.isHeld ||= isHeld(address, method);
    return isHeld(address, method) ? promise.then(go) : go();
  });
}

function holdSaves() {
  hold((address, method) => method === "POST");
}

function holdAll() {
  hold(() => true);
}

function holdMarkdown() {
  hold((address) => address.endsWith("/markdown"));
}

// An upload does not continue until half a second after somebody has tried to save the post.
function slowUploads() {
  const saved = new Promise((done) => addEventListener("submit", done, true));
  wrapFetch((go, address) => (address.endsWith("/upload") ? saved.then(half).then(go) : go()));
}

function slowStorage() {
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = function (...given) {
    const [opening, late] = [open.apply(this, given), {}];
    opening.onsuccess = () => setTimeout(() => (late.result = opening.result) && late.onsuccess(), 1000);
    return late;
  };
}
