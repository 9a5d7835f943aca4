// The form of a post. What is typed is kept as a copy on the server; the post changes when a button says so.
import { button, changed, copies, create, isRefused, put, records, rescued, shownTime, sizeOf } from "./owner.js";
import { openEditor } from "./editor.js";
import { openImages } from "./images.js";
import { openTools } from "./tools.js";

const content = document.getElementById("content");
const post = content.form;
const upload = document.getElementById("upload");
const bar = document.querySelector(".bar");
const saveButton = document.getElementById("save");
post.autocomplete = "off"; // After Back or a reload, the copy restores what was typed.
const isField = (each) => each.name && !each.name.endsWith("_token") && !["file", "submit", "button"].includes(each.type);
const fields = [...post.elements].filter(isField);
const { number, over, etag, base, post_id: postId, status, copy } = post.elements;
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

// Sending. idle: the server has all; typing: a timer runs; sending; waiting: for a retry; leaving: the page is submitted.
let [state, had, savedAt] = ["idle", Number(number.value), Number(number.value)]; // had: the number that the server has
let [first, tries, timer, rival] = [0, 0, 0, null]; // rival: the copy that was continued elsewhere
let [isLive, knows] = [false, false]; // published since the form was opened; the writer knows that
const isUnsent = () => Number(number.value) > had;
const soon = (next, delay) => {
  state = next;
  clearTimeout(timer);
  timer = setTimeout(() => send({ asks: true }), delay);
};
const question = () => ({ copy: copy.value, number: "0", over: over.value, post_id: postId.value, etag: etag.value });
const send = async ({ keepalive = false, asks = false, saves = false, returns = false } = {}) => {
  clearTimeout(timer);
  if (!isUnsent() && !asks) {
    return 200;
  }
  const [sent, isNews] = [Number(number.value), isUnsent()];
  [state, first] = ["sending", 0];
  isNews && say("Sending…");
  const answer = await put(isNews ? typed() : question(), keepalive);
  if (state === "leaving") {
    return answer.status;
  }
  takeTokens(answer);
  const isOld = sent < Number(number.value);
  if (answer.status === 200 || answer.status === 409) {
    [had, tries] = [Math.max(had, sent), 0];
    alarm("failed");
    isOld ? soon("typing", 2000) : (state = "idle");
    takeIn(answer, { isNews, isUntouched: returns && !isNews && !isOld && !saves });
  } else if (isRefused(answer.status)) {
    state = "idle"; // A retry would not help; the next key press tries again.
    say("", "failed");
    alarm("failed", "This text is only in this browser: the server refuses it. Save it to see why.");
  } else if (!isUnsent() && !saves) {
    state = "idle"; // The next look for changes elsewhere is soon.
  } else {
    const reason = { 0: "there is no connection", 403: "the session has ended; open another in a new tab" }[answer.status];
    say("", "failed");
    alarm("failed", `Not saved: ${reason ?? "the server does not answer"}. The text is kept in this browser.`);
    soon("waiting", [2000, 5000, 10000][tries++] ?? 30000);
  }
  return answer.status;
};
const takeTokens = (answer) => {
  for (const [form, name, token] of [[post, "form_token"], [post, "preview_token"], [upload, "form_token", "upload_token"]]) {
    form.elements[name].value = answer[token ?? name] ?? form.elements[name].value; // those of a new session
  }
};
const takeIn = (answer, { isNews, isUntouched }) => {
  const isElsewhere = answer.status === 409;
  const isOther = answer.etag !== undefined && answer.etag !== etag.value;
  if (answer.form !== pathOf(post.action)) {
    location.replace(answer.form); // Its post was created meanwhile.
  } else if (isUntouched && ((isElsewhere && !answer.is_aside) || (isOther && had === savedAt))) {
    location.reload(); // Nothing was typed here, so show the current text.
  } else if (isElsewhere) {
    ask(answer);
  } else {
    rival = null;
    alarm("rival");
    isOther && warn(answer);
    isNews && say(`Kept ${time()}, not in the post yet`, "kept");
  }
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
const ask = (answer) => {
  rival = answer;
  say("");
  const where = `You also wrote here (${answer.state === "open" ? `${answer.browser}, ${shownTime.format(new Date(answer.at))}` : "in another window"}).`;
  const goOn = () => {
    [over.value, number.value] = [rival.over, Number(number.value) + 1];
    alarm("rival");
    send();
  };
  const compare = async () => {
    await send({ asks: true, saves: true });
    open(`${copies}${copy.value}/compare?with=${rival.over.split(" ")[0]}`);
  };
  alarm("rival", where, button("Compare", compare, "quiet"), button("Use this text", goOn, "quiet"), " The other stays in History.");
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
  if (!postId.value && !location.search.includes(copy.value)) {
    history.replaceState(null, "", `?copy=${copy.value}`); // A reload shows this copy.
  }
  if (["idle", "typing", "leaving"].includes(state)) {
    const longest = Math.min(10000, 3000 + content.textLength / 100); // A megabyte costs the server 32 ms.
    soon("typing", Math.min(2000, Math.max(0, first + longest - Date.now())));
  }
});
const leave = () => {
  if (isUnsent() && state !== "leaving") {
    records.set(typed());
    send({ keepalive: sizeOf(typed()) < 60000 }); // With it, browsers send at most 64 KiB.
  }
};
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => event.persisted && !isUnsent() && location.reload());
addEventListener("online", () => state === "waiting" && send({ asks: true }));
const look = (options) => ["idle", "waiting"].includes(state) && !rival && send({ asks: true, ...options }); // for changes elsewhere
addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? look({ returns: true }) : leave()));
setInterval(() => document.visibilityState === "visible" && state === "idle" && look(), 10000);
// A reload can overtake what the page sent as it was left. After one that has changed nothing, no other follows.
if (performance.getEntriesByType("navigation")[0].type === "reload" && history.state !== over.value) {
  history.replaceState(over.value, "");
  [1000, 3000, 9000].forEach((delay) => setTimeout(() => look({ returns: true }), delay));
}
addEventListener("beforeunload", (event) => {
  state !== "leaving" && ((isUnsent() && !isKept) || images.isBusy) && event.preventDefault();
});
rescued.then((found) => {
  const isOwn = ({ each }) => each.post_id === postId.value && (each.post_id || location.search.includes(each.copy));
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

// Saving: the copy is sent first, so that the page stays if the server is away or the session has ended.
document.querySelector("form[action$='/discard']")?.addEventListener("submit", () => {
  had = Number(number.value); // Nothing more of it is sent.
  records.drop(typed());
});
let isSaving = false;
const save = async (submitter) => {
  if (isLive && !knows) {
    knows = true;
    return alarm("changed", "Readers see this post. Press the button again to show them this text.");
  }
  say("Saving…");
  await images.settled();
  const answered = await send({ asks: true, saves: true });
  const isRedated = status.value === "published" && !date.value; // The server dates it.
  if (answered === 200 && !submitter.value && !isRedated && !(await isLeaving())) {
    return;
  }
  if (answered === 200 || isRefused(answered)) {
    state = "leaving";
    post.requestSubmit(submitter);
  }
};
// Save stays in the form, which goes on as that of the saved post. Refusals are shown by a page of their own.
const isLeaving = async () => {
  const sent = typed();
  clearTimeout(timer);
  state = "sending";
  const body = new FormData(post, saveButton);
  const answer = await fetch(post.action, { method: "POST", body, redirect: "manual" }).catch(() => null);
  if (!answer || answer.status >= 500) {
    alarm("failed", "Not saved: the server does not answer. Press Save again.");
    soon("waiting", 2000);
    return false;
  }
  if (answer.type !== "opaqueredirect") {
    return true;
  }
  let now = {};
  while (now.status !== 200) {
    now = await put(question());
    await (now.status === 200 || new Promise((done) => setTimeout(done, 2000)));
  }
  now.saved_etag ? goOnAs(now, sent) : location.assign(now.form);
  return false;
};
const goOnAs = (now, sent) => {
  takeTokens(now);
  [etag.value, base.value, postId.value] = [now.saved_etag, now.saved_base, now.form.match(/(\d+)\/edit$/)[1]];
  post.action = now.form;
  history.replaceState(null, "", now.form);
  document.querySelectorAll(".notice, .problem").forEach((each) => each.remove()); // about what was unsaved
  document.title = document.title.replace(/^New post|^Not saved: /, () => (postId.value ? "Edit" : ""));
  const [back, href, textContent] = [document.querySelector(".heading a"), now.form.replace(/\/edit$/, ""), "Back to the post"];
  Object.assign(back, { href, textContent });
  had = savedAt = Math.max(had, Number(sent.number));
  if (isLive) {
    [status.value, date.value] = ["published", now.published_at];
  }
  [isLive, knows] = [false, false];
  ["changed", "failed", "image", "paste"].forEach((kind) => alarm(kind));
  isUnsent() ? soon("typing", 2000) : (state = "idle");
  say(`${{ published: "Updated for readers", scheduled: "Saved, still scheduled" }[status.value] ?? "Saved"} ${time()}`, `saved ${sent.number}`);
};
post.addEventListener("formdata", ({ formData }) => knows && formData.set("knows", "on"));
post.addEventListener("submit", (event) => {
  if (!event.submitter?.formTarget && state !== "leaving") {
    event.preventDefault();
    isSaving ||= save(event.submitter).finally(() => (isSaving = false));
  }
});
addEventListener("keydown", (event) => {
  const isSave = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "s";
  isSave && post.requestSubmit(saveButton, event.preventDefault());
});
post.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.tagName === "INPUT" && event.target.form === post && !event.isComposing) {
    event.preventDefault(); // Otherwise, the first button of the form would be pressed.
    event.target.name === "title" ? content.focus() : ["published", "scheduled"].includes(status.value) || post.requestSubmit(saveButton);
  }
});

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

const editor = openEditor(content);
editor.area.setSelectionRange(content.textLength, content.textLength);
const images = openImages(editor, { post, upload, say, alarm });
openTools(editor, { post, alarm, images });
visualViewport?.addEventListener("resize", () => {
  const hidden = visualViewport.scale > 1 ? 0 : Math.max(0, innerHeight - visualViewport.height);
  bar.style.bottom = `${hidden}px`;
});
