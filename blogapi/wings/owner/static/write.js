// The form of a post. The server keeps a copy of the typed text. Only a button changes the post.
import { alarm, bar, clear, content, date, fields, isWide, mark, panel, post, saveButton, say, sheet, shortcut, showBeside, time, typed, upload } from "./form.js";
import { button, changed, copies, create, formOf, handOver, isRefused, parse, put, records, rescued, shownTime, sizeOf, throttled } from "./owner.js";
import { openEditor } from "./editor.js";
import { openImages } from "./images.js";
import { openTools } from "./tools.js";

const { number, previous, etag, base, draft, copy, status, caret } = post.elements;
const isNew = () => !/^\d+$/.test(draft.value);

// The state of the form. `number` grows with each change, and `had` is the number of the text that the server has. After each request, `next` handles the buttons pressed and the text typed in the meantime.
//   idle     the server has the whole text
//   typing   a timer will send the text
//   waiting  the text could not be sent; a timer will retry
//   sending  a request sends the text, or asks for news
//   saving   a request sends the text, and then another one saves the post
//   leaving  the browser is leaving the page
let state = "idle";
let [pressed, label] = [null, ""]; // the button that saves the post next, with the text to save; the name of the last button pressed
let [had, savedAt] = [Number(number.value), Number(number.value)];
let [tries, timer, outcome] = [0, 0, null]; // outcome: what the bar says after a save, until something is typed
const isUnsent = () => Number(number.value) > had;
const soon = (waits, delay) => ([state, timer] = [waits, clearTimeout(timer) ?? setTimeout(() => exchange(), delay)]);
const sendSoon = () => soon("typing", 2500 + content.textLength / 1000); // Long texts wait longer: a megabyte costs the server up to 70 ms.
const isResting = () => ["idle", "typing", "waiting"].includes(state);
const next = () => (pressed?.text ? save(pressed) : isUnsent() ? sendSoon() : (state = "idle"));
// A button saves the text as it was when the button was pressed or, if a paste or upload was still in progress, as it stood once that had finished.
const freeze = () => pressed && !editor.isAdding && (pressed.text ??= typed());
const frozen = (text) => ({ ...text, etag: etag.value, base: base.value, draft: draft.value, previous: previous.value });
const question = () => ({ copy: copy.value, number: String(had), previous: previous.value, draft: draft.value, status: status.value, base: base.value });
const linkTo = (href, text) => (href ? [" ", create("a", { href }, text)] : []);
const REASONS = { 0: "there is no connection", 403: "you are signed out; sign in again in a new tab" };

// Send the typed text, or ask for news; return the status of the response.
const exchange = async (during = "sending", keepalive = false, text = typed()) => {
  clearTimeout(timer);
  const [sent, isNews] = [Number(text.number), Number(text.number) > had];
  state = during;
  let answer = null;
  setTimeout(() => !answer && state === "sending" && !pressed && isUnsent() && !bar.querySelector("#alarm-failed") && say("Kept in this browser, not on the server yet", "slow"), 4000);
  while (removed[0] && ((answer = await put({ ...removed[0], copy: copy.value })).isThere || isRefused(answer.status))) {
    records.drop(removed.shift());
  }
  answer = removed[0] ? answer : await put(isNews ? frozen(text) : question(), keepalive);
  if (state !== during) {
    return answer.status;
  }
  if (answer.isThere) {
    [had, tries] = [Math.max(had, sent), 0];
    alarm("failed");
    takeIn(answer, isNews);
  } else if (isRefused(answer.status)) {
    state = pressed || during === "saving" ? during : "idle"; // A retry would not help; the next key press tries again.
    failed("This text is only in this browser: the server refuses it. Save it to see why.");
  } else {
    (isNews || pressed || during === "saving") && failed(`Not saved: ${REASONS[answer.status] ?? "the server is not responding"}. The text is kept in this browser.${pressed || during === "saving" ? ` Press “${label}” again later.` : ""}`);
    (pressed || during === "saving") && fail();
    soon("waiting", [2000, 5000, 10000][tries++] ?? 30000);
  }
  state === "sending" && next();
  return answer.status;
};
const failed = (text) => [say("", "failed"), alarm("failed", text)];
const fail = () => [alarm("missed", `“${label}” did not go through. Press it again.`), (pressed = null)];
const takeIn = (answer, isNews) => {
  const { form_token: token, preview_token: previewToken } = post.elements; // A new session has other tokens.
  [token.value, previewToken.value, upload.elements.form_token.value] = [answer.form_token, answer.preview_token, answer.upload_token];
  answer.saved_etag && ([etag.value, base.value] = [answer.saved_etag, answer.saved_base]); // The post already contains text from this form, perhaps from a save whose response was lost.
  const isOther = answer.etag !== undefined && answer.etag !== etag.value; // The post was changed elsewhere.
  const isHere = state === "saving" || (navigator.userActivation?.hasBeenActive && document.hasFocus() && post.contains(document.activeElement)); // The writer may continue typing.
  const isPublished = answer.is_saved && !isOther && answer.status_of_post !== status.value; // by a button whose response was lost
  const isSeen = answer.etag === post.elements.replaces?.value; // The page compares the two versions.
  const isNewer = answer.is_untouched || answer.is_merged || isPublished || (answer.etag && isOther && !isSeen && had === savedAt && !isHere);
  if ((isNewer && !isUnsent()) || new URL(post.action).pathname !== answer.form) {
    const lost = answer.mine === copy.value && copies + answer.mine; // A reload keeps the state of the history.
    history.replaceState({ ...history.state, lost, merged: answer.is_merged }, "", answer.form.endsWith("/new") ? `?copy=${draft.value}` : answer.form);
    location.reload((state = "leaving")); // The post may have been created.
  } else if (answer.status === 409) {
    ask(answer);
  } else {
    alarm("rival", (asked = ""));
    (isOther && isSeen) || alarm("changed", isOther ? answer.warning : "");
    const isLive = answer.status_of_post === "published" && status.value !== "published"; // since this page was loaded
    isLive && [Object.assign(document.querySelector(".state"), { textContent: "published", className: "state good" }), (saveButton.textContent = "Update…")];
    if (answer.is_saved && savedAt !== had && !isUnsent()) {
      savedAt = had;
      clear(alarm("missed"));
      outcome = say("No unsaved changes", "kept");
    } else if (isNews && state !== "saving") {
      say(`Kept ${time()}${innerWidth > 480 ? `, not ${isNew() ? "saved as a draft" : "in the post"} yet${content.value.includes("![](") ? ". Describe the image in the [ ]." : ""}` : ""}`, "kept", ...linkTo(answer.earlier && copies + answer.earlier, "Earlier text"), ...linkTo(!answer.earlier && answer.is_cut && copies + copy.value, "Show the post’s text"));
    }
    suggest(answer);
  }
};
// Derive the slug from the title until the writer edits the slug. If it equals `suggested`, the server derives it as well.
const suggest = ({ slug, address }) => {
  const { slug: field, suggested } = post.elements;
  const isFree = ["", suggested.value].includes(field.value) && document.activeElement !== field;
  isFree && (slug || (slug === "" && isNew())) && (field.value = suggested.value = slug);
  address && (document.getElementById("address-on-site").textContent = `Its address: ${address}`);
};
let asked = ""; // the other text that the bar asks about
const ask = ({ browser, at, previous: other, mine }) => {
  say(pressed || state === "saving" ? "Not saved: first choose the text to keep." : "");
  pressed = null;
  const use = () => {
    [previous.value, number.value] = [`${other} replaced`, Number(number.value) + 1];
    isResting() && exchange();
  };
  if (mine && asked !== other) { // The server may not have this form's text yet.
    const where = `${asked ? "The other text has changed again" : "You also wrote in another window"} (${browser}, ${shownTime(at)}).`;
    alarm("rival");
    alarm("rival", where, " ", create("a", { target: "_blank", href: `${copies}${mine}?here=1` }, "Show the other text"), button("Use this text", use, "quiet"), " Both texts are kept.");
    asked = other;
  }
};

// Keep the typed text: in the browser within a second, and on the server within three seconds, or later if it is long.
let isKept = true;
const keep = throttled(async () => (isKept = !isUnsent() || (await records.set(typed())) !== null), () => 200 + content.textLength / 500);
fields.forEach((field) => field.addEventListener("input", () => {
  document.getElementById(field.name)?.removeAttribute("aria-invalid"); // The message is about the previous value.
  document.getElementById(`${field.name}-wrong`)?.remove();
  [number.value, caret.value] = [Number(number.value) + 1, content.selectionEnd];
  keep();
  outcome?.isConnected && say("Changes not in the post yet", "typed");
  isNew() && !location.search.includes(draft.value) && history.replaceState(history.state, "", `?copy=${draft.value}`); // so that a reload shows this draft
  state === "idle" && sendSoon();
}));
const removed = []; // texts that were typed over; the server gets them before the later text, and until then, the browser stores them beside it
const isLong = ({ selectionStart, selectionEnd, textLength }) => selectionEnd - selectionStart >= Math.min(200, Math.max(20, textLength / 2));
const keepRemoved = ({ target }) => isUnsent() && isLong(target) && records.set(removed[removed.push({ ...frozen(typed()), copy: `${copy.value.slice(0, 40)}-${number.value}` }) - 1]);
["beforeinput", "paste"].forEach((kind) => post.addEventListener(kind, keepRemoved, true));
const leave = () => { // Firefox ends a script that runs for a long time while the page is being left.
  const record = isUnsent() ? typed() : null;
  number.value > 0 && localStorage.setItem(copies + draft.value, editor.selection[0]);
  if (record) {
    const keepalive = content.textLength < 60000 && sizeOf(record) < 60000; // With keepalive, browsers send at most 64 KiB.
    records.set(record);
    isResting() ? exchange("sending", keepalive) : put(record, keepalive);
  }
  handOver(record);
};
const look = () => ["idle", "waiting"].includes(state) && exchange(); // Ask for news, or try again.
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => event.persisted && !isUnsent() && location.reload());
addEventListener("online", look);
addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? look() : leave()));
setInterval(() => document.visibilityState === "visible" && look(), 10000);
addEventListener("beforeunload", (event) => state !== "leaving" && ((isUnsent() && !isKept) || editor.isAdding || bar.querySelector("#alarm-image button ~ button")) && event.preventDefault());
rescued.then((found) => {
  const own = found.filter(({ each }) => !isUnsent() && each.draft === draft.value && (!isNew() || location.search.includes(each.draft)));
  own.filter(({ isThere }) => !isThere).forEach(({ each }) => changed(content, fields.forEach((field) => (field.value = each[field.name] ?? field.value))));
  own.some(({ each, isThere, isDropped }) => isThere && isDropped && previous.value !== `${each.copy} ${each.number}`) && location.reload(); // The server sent this page before it received this text.
});

// Discard first sends the latest text, so that undoing it restores everything.
document.addEventListener("submit", (event) => {
  const isDiscard = event.target.matches("[action$='/discard']") && isUnsent();
  isDiscard && exchange(event.preventDefault()).then((status) => [200, 409].includes(status) && event.target.requestSubmit());
});

// Before saving, send the copy. The page stays if the server does not respond, or has newer text from another form.
post.addEventListener("submit", (event) => {
  if (!event.submitter?.formTarget && state !== "leaving") {
    event.preventDefault();
    pressed = { button: event.submitter ?? saveButton };
    label = pressed.button.textContent;
    freeze();
    alarm("missed");
    say(editor.isAdding ? "Saving once everything is added…" : "Saving…");
    pressed.button.closest("[popover]")?.hidePopover(); // The dialog would cover the bar.
    isResting() && next();
  }
});
const save = async ({ button: submitter, text }) => {
  pressed = null;
  say("Saving…");
  (await exchange("saving", false, text)) === 409 && next();
  if (state !== "saving") {
    return;
  }
  const [sent, body] = [Number(text.number), formOf(frozen(text), new FormData(post, submitter))];
  const answer = await fetch(post.action, { method: "POST", body, redirect: "manual" }).catch(() => null);
  if (!answer || answer.status >= 500) {
    alarm("failed", "Not saved: the server is not responding.");
    soon("waiting", 2000, fail());
  } else if (answer.status === 400) {
    mark(parse(await answer.text()));
    say("Not saved", `refused ${sent}`);
    next();
  } else if (answer.type === "opaqueredirect") {
    await goOn(sent, body);
  } else {
    state = "leaving";
    post.requestSubmit(submitter); // The response replaces this page.
  }
};
// After a save, the form stays open for the saved post. After publishing, show the page of the post.
const goOn = async (sent, body) => {
  let [now, publishes] = [null, body.get("to")];
  while (!(now = await put(question())).isThere) {
    await new Promise((done) => setTimeout(done, 2000));
  }
  const page = now.form.replace(/\/edit$/, "");
  if (publishes || !now.saved_etag) {
    state = "leaving";
    return location.assign(publishes ? page : now.form);
  }
  const isSame = now.saved_etag === etag.value;
  [draft.value, post.action] = [page.match(/\d+$/)[0], now.form];
  had = savedAt = sent;
  takeIn(now, false);
  if (state === "leaving") {
    return;
  }
  history.replaceState({ side: sheet.dataset.side }, "", now.form);
  clear();
  body.has("replaces") && showCaret();
  document.title = `Edit ${post.elements.title.value} – blogapi`;
  Object.assign(document.querySelector(".back + .back"), { href: page, hidden: false });
  date.value ||= status.value === "published" ? now.published_at : "";
  date.dispatchEvent(new Event("change")); // shows it
  ["failed", "image", "lost", "paste"].forEach((kind) => alarm(kind));
  const saved = { published: "Updated for readers", scheduled: "Saved, still scheduled" }[status.value] ?? (new Date(date.value) > new Date() ? "Saved, not scheduled" : "Saved");
  outcome = say(`${isSame ? "Nothing has changed" : `${saved} ${time()}`}${isUnsent() ? "; later changes are not in the post yet" : ""}`, `saved ${sent} ${isSame}`, ...linkTo(status.value === "published" && now.url, "View on the site"));
  next();
};
const buttons = { s: () => saveButton, enter: () => bar.querySelector("[popovertarget=publishing]") ?? bar.querySelector(".primary:not([hidden])"), "shift+enter": () => document.getElementById("preview") };
addEventListener("keydown", (event) => document.querySelector(":modal, #comparison:popover-open") || buttons[shortcut(event)]?.().click(event.preventDefault()));

const editor = openEditor(content, () => isResting(freeze()) && next());
const news = document.querySelector("main > div.problem h2, main > p.problem, main > .notice[role]");
history.scrollRestoration = news ? "manual" : "auto"; // Chromium would scroll away from the news after a reload.
const at = Number(caret.value || localStorage.getItem(copies + draft.value)); // where the writer typed last, or left the post
const showCaret = () => [editor.select(...editor.selection), isWide.matches || content.blur()]; // Otherwise, a phone would show its keyboard.
content.setSelectionRange(at, at);
news ? Object.assign(news, { tabIndex: -1 }).focus() : post.elements.title.autofocus || showCaret();
document.querySelector("[data-asked]")?.showPopover();
history.state.merged && (document.getElementById("saving").textContent || say("Saved together with the changes made elsewhere", "kept"));
history.state.lost && alarm("lost", content.value ? "This text has replaced yours, which is kept." : "Your text was discarded elsewhere. It is in the trash.", ...linkTo(history.state.lost, "Show the replaced text"));
isWide.addEventListener("change", () => {
  showBeside(isWide.matches ? sheet.dataset.side || "settings" : panel.contains(document.activeElement) ? "settings" : "");
  document.activeElement === content ? editor.select(...editor.selection) : document.activeElement.scrollIntoView({ block: "nearest" });
});
openTools(editor, content, { post, say, alarm, images: openImages(editor, { post, upload, say, alarm }) });
visualViewport?.addEventListener("resize", () => (bar.style.bottom = visualViewport.scale > 1 ? "0" : `${Math.max(0, innerHeight - visualViewport.height)}px`)); // above a keyboard
