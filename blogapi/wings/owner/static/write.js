// The form of a post. What is typed is kept as a copy on the server; the post changes when a button says so.
import { alarm, bar, content, date, fields, pathOf, post, saveButton, say, show, status, time, typed, upload } from "./form.js";
import { button, changed, copies, create, isRefused, load, parse, put, records, rescued, shownTime, sizeOf } from "./owner.js";
import { openEditor } from "./editor.js";
import { openImages } from "./images.js";
import { openTools } from "./tools.js";

const { number, over, etag, base, draft, copy } = post.elements;
const isNew = () => !/^\d+$/.test(draft.value);

// The state of the form. `number` counts what is typed, and the server has all of it until `had`. After each request,
// `next` serves what was pressed or typed meanwhile.
//   idle     the server has all
//   typing   it is sent when a timer ends
//   waiting  it could not be sent; a timer retries
//   sending  it is being sent, or the server is being asked for news
//   saving   it is being sent, and then the post is being saved
//   leaving  the page goes
let state = "idle";
let pressed = null; // the button that saves the post next
let [had, savedAt] = [Number(number.value), Number(number.value)];
let [first, tries, timer] = [0, 0, 0]; // first: when what is not sent yet was typed
let [isLive, knows] = [false, false]; // published since the form was opened; the writer knows that
const isUnsent = () => Number(number.value) > had;
const soon = (waits, delay) => {
  state = waits;
  clearTimeout(timer);
  timer = setTimeout(() => exchange(), delay);
};
const isResting = () => ["idle", "typing", "waiting"].includes(state);
const next = () => {
  if (pressed && !editor.isAdding) {
    save(pressed);
  } else if (isUnsent()) {
    soon("typing", 2000);
  } else {
    state = "idle";
  }
};
const question = () => ({ copy: copy.value, number: String(had), over: over.value, draft: draft.value });
const REASONS = { 0: "there is no connection", 403: "the session has ended; open another in a new tab" };

// Sends what is typed, or asks for news; returns the status of the answer.
const exchange = async (during = "sending", keepalive = false) => {
  clearTimeout(timer);
  const [sent, isNews] = [Number(number.value), isUnsent()];
  [state, first] = [during, 0];
  isNews && during === "sending" && say("Sending…");
  const answer = await put(isNews ? typed() : question(), keepalive);
  const { status } = answer;
  if (state !== during) {
    return status;
  }
  if (status === 200 || status === 409) {
    [had, tries] = [Math.max(had, sent), 0];
    alarm("failed");
    takeIn(answer, isNews);
  } else if (isRefused(status)) {
    state = pressed || during === "saving" ? during : "idle"; // A retry would not help; the next key press tries again.
    say("", "failed");
    alarm("failed", "This text is only in this browser: the server refuses it. Save it to see why.");
  } else {
    if (isNews || pressed || during === "saving") {
      say("", "failed");
      alarm("failed", `Not saved: ${REASONS[status] ?? "the server does not answer"}. The text is kept in this browser.`);
    }
    pressed = null;
    soon("waiting", [2000, 5000, 10000][tries++] ?? 30000);
  }
  state === "sending" && next();
  return status;
};
const takeTokens = (answer) => {
  for (const [form, name, token] of [[post, "form_token"], [post, "preview_token"], [upload, "form_token", "upload_token"]]) {
    form.elements[name].value = answer[token ?? name] ?? form.elements[name].value; // those of a new session
  }
};
const takeIn = (answer, isNews) => {
  takeTokens(answer);
  const isOther = answer.etag !== undefined && answer.etag !== etag.value; // The post was changed elsewhere.
  if (answer.form !== pathOf(post.action)) {
    location.replace(answer.form); // It was created meanwhile.
  } else if (!isUnsent() && (answer.is_untouched || (answer.etag && isOther && had === savedAt))) {
    takeNewer(answer.form);
  } else if (answer.status === 409) {
    ask(answer);
  } else {
    alarm("rival");
    isOther && warn(answer);
    isNews && state !== "saving" && say(`Kept ${time()}, not in the post yet`, "kept");
    suggest(answer);
  }
};
// The slug that the title gives is filled in until somebody edits it. The server tells by `suggested`, which has it, too.
const suggest = ({ slug, address }) => {
  const { slug: field, suggested } = post.elements;
  if (slug !== undefined && ["", suggested.value].includes(field.value) && document.activeElement !== field) {
    field.value = suggested.value = slug;
  }
  address && [...document.querySelectorAll("#address-on-site")].forEach((each) => (each.textContent = address));
};
const warn = (answer) => {
  isLive ||= answer.status_of_post === "published" && status.value !== "published";
  if (isLive && answer.etag) {
    [saveButton.textContent, saveButton.className] = ["Update", "primary"];
    document.querySelector("[popovertarget]")?.remove();
    alarm("changed", knows ? "" : "This post is live now. Update shows readers this text.");
  } else {
    const deleted = "This post was deleted elsewhere. The text here is kept: saving it makes a new post.";
    alarm("changed", answer.etag ? "This post was changed elsewhere, too. When you save, you can compare the two texts." : deleted);
  }
};
const ask = ({ browser, at, over: other, mine }) => {
  say("");
  const goOn = () => {
    [over.value, number.value] = [other, Number(number.value) + 1];
    alarm("rival");
    isResting() && exchange();
  };
  const show = () => open(`${copies}${mine}/compare?with=${other.split(" ")[0]}`);
  const where = `You also wrote here (${browser}, ${shownTime.format(new Date(at))}).`;
  alarm("rival", where, button("Show the other text", show, "quiet"), button("Use this text", goOn, "quiet"), " The other stays in History.");
};

const takeNewer = async (address) => {
  const sent = typed();
  const page = await load(address);
  if (isUnsent() || state !== "idle") {
    return; // The next answer tells the same.
  }
  show(page, sent) || location.replace(address);
  savedAt = had;
};

// Keeping: what is typed is in the browser within half a second, and on the server within three, or later if it is long.
let [isKeeping, isKept] = [false, true];
const keep = async () => {
  if (!isKeeping && isUnsent()) {
    isKeeping = true;
    const record = typed();
    isKept = (await records.set(record)) !== null;
    setTimeout(() => {
      isKeeping = false;
      record.number !== number.value && keep();
    }, 500 + record.content.length / 500);
  }
};
post.addEventListener("input", (event) => {
  if (!fields.includes(event.target) && event.target.type !== "datetime-local") {
    return;
  }
  number.value = Number(number.value) + 1;
  first || setTimeout(keep);
  first ||= Date.now();
  if (isNew() && !location.search.includes(draft.value)) {
    history.replaceState(null, "", `?copy=${draft.value}`); // A reload shows this draft.
  }
  if (["idle", "typing"].includes(state)) {
    const longest = Math.min(10000, 3000 + content.textLength / 100); // A megabyte costs the server 32 ms.
    soon("typing", Math.min(2000, Math.max(0, first + longest - Date.now())));
  }
});
const leave = () => {
  if (isUnsent()) {
    const keepalive = sizeOf(typed()) < 60000; // With it, browsers send at most 64 KiB.
    records.set(typed());
    isResting() ? exchange("sending", keepalive) : put(typed(), keepalive);
  }
};
const look = () => state === "idle" && exchange(); // for news
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => event.persisted && !isUnsent() && location.reload());
addEventListener("online", () => state === "waiting" && exchange());
addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? look() : leave()));
setInterval(() => document.visibilityState === "visible" && look(), 10000);
// A reload can overtake what the page sent as it was left.
performance.getEntriesByType("navigation")[0].type === "reload" && [1000, 3000, 9000].forEach((delay) => setTimeout(look, delay));
addEventListener("beforeunload", (event) => {
  state !== "leaving" && ((isUnsent() && !isKept) || editor.isAdding) && event.preventDefault();
});
rescued.then((found) => {
  const isOwn = ({ each }) => each.draft === draft.value && (!isNew() || location.search.includes(each.draft));
  for (const { each, status: answered, isDropped } of isUnsent() ? [] : found.filter(isOwn)) {
    if (answered === 200 && isDropped && over.value !== `${each.copy} ${each.number}`) {
      return location.reload(); // The server did not have it yet when it sent this page.
    }
    if (![200, 409].includes(answered)) {
      fields.forEach((field) => (field.value = each[field.name] ?? field.value));
      changed(content);
    }
  }
});

// Discard sends what was typed last, too, so that its undo brings back everything.
document.addEventListener("submit", async (event) => {
  const discards = event.target;
  if (discards.matches("[action$='/discard']") && isUnsent()) {
    event.preventDefault();
    [200, 409].includes(await exchange()) && discards.requestSubmit();
  }
});

// Saving: the copy is sent first, so that the page stays if the server is away, or has text of another form.
const press = async (submitter) => {
  pressed = submitter;
  editor.isAdding && say("Saving after what is being added…");
  await editor.added();
  isResting() && next();
};
const save = async (submitter) => {
  pressed = null;
  if (isLive && !knows) {
    knows = true;
    alarm("changed", "Readers see this post. Press the button again to show them this text.");
    return next();
  }
  say("Saving…");
  if ((await exchange("saving")) === 409) {
    pressed = null;
    next();
  }
  if (state !== "saving") {
    return;
  }
  const [sent, body] = [typed(), new FormData(post, submitter)];
  const answer = await fetch(post.action, { method: "POST", body, redirect: "manual" }).catch(() => null);
  if (!answer || answer.status >= 500) {
    pressed = null;
    alarm("failed", "Not saved: the server does not answer. Press Save again.");
    soon("waiting", 2000);
  } else if (answer.type !== "opaqueredirect") {
    show(parse(await answer.text()), sent) ? next(say("Not saved", `refused ${sent.number}`)) : resubmit(submitter);
  } else {
    await goOn(sent, submitter.value);
  }
};
const resubmit = (submitter) => {
  state = "leaving";
  post.requestSubmit(submitter); // The answer is a page of its own.
};
// Save stays in the form, which goes on as that of the saved post; what publishes shows the post.
const goOn = async (sent, publishes) => {
  let now = {};
  while (now.status !== 200 && now.status !== 409) {
    now = await put(question());
    await (now.status === 200 || now.status === 409 || new Promise((done) => setTimeout(done, 2000)));
  }
  const page = now.form.replace(/\/edit$/, "");
  if (publishes || !now.saved_etag) {
    state = "leaving";
    return location.assign(publishes ? page : now.form);
  }
  takeTokens(now);
  [etag.value, base.value, draft.value, post.action] = [now.saved_etag, now.saved_base, page.match(/\d+$/)[0], now.form];
  history.replaceState(null, "", now.form);
  document.querySelectorAll(".notice, .problem, .wrong").forEach((each) => each.remove()); // about what was unsaved
  document.querySelectorAll("[aria-invalid]").forEach((each) => each.removeAttribute("aria-invalid"));
  document.title = `Edit ${post.elements.title.value} – blogapi`;
  Object.assign(document.querySelector(".heading a"), { href: page, textContent: "Back to the post" });
  had = savedAt = Math.max(had, Number(sent.number));
  if (isLive || (status.value === "published" && !date.value)) {
    [status.value, date.value] = ["published", now.published_at];
  }
  [isLive, knows] = [false, false];
  ["changed", "failed", "image", "paste", "rival"].forEach((kind) => alarm(kind));
  const link = status.value === "published" && now.url ? [" ", create("a", { href: now.url, textContent: "View on the site" })] : [];
  const outcome = { published: "Updated for readers", scheduled: "Saved, still scheduled" }[status.value] ?? "Saved";
  say(`${outcome} ${time()}`, `saved ${sent.number}`, ...link);
  next();
};
post.addEventListener("formdata", ({ formData }) => knows && formData.set("knows", "on"));
post.addEventListener("submit", (event) => {
  if (!event.submitter?.formTarget && state !== "leaving") {
    event.preventDefault();
    press(event.submitter ?? saveButton);
  }
});
addEventListener("keydown", (event) => {
  const isSave = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "s";
  isSave && post.requestSubmit(saveButton, event.preventDefault());
});
post.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.target.tagName === "INPUT" || event.target.name === "title") && event.target.form === post && !event.isComposing) {
    event.preventDefault(); // Otherwise, the first button of the form would be pressed.
    event.target.name === "title" ? content.focus() : ["published", "scheduled"].includes(status.value) || post.requestSubmit(saveButton);
  }
});

const editor = openEditor(content);
editor.area.setSelectionRange(content.textLength, content.textLength);
openTools(editor, { post, say, alarm, images: openImages(editor, { post, upload, say, alarm }) });
visualViewport?.addEventListener("resize", () => {
  const hidden = visualViewport.scale > 1 ? 0 : Math.max(0, innerHeight - visualViewport.height);
  bar.style.bottom = `${hidden}px`;
});
