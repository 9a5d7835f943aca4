// The page works without this script; its copy buttons are hidden then.
for (const button of document.querySelectorAll("[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copies);
    getSelection().selectAllChildren(source);
    const copied = await navigator.clipboard?.writeText(source.textContent).then(() => true, () => false);
    button.nextElementSibling.textContent = copied || document.execCommand("copy") ? "Copied" : "Press Ctrl+C to copy";
  });
}

// Helpers for the parts below.
const create = (name, properties = {}, attributes = {}) => {
  const element = Object.assign(document.createElement(name), properties);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  return element;
};
const changed = (field) => field.dispatchEvent(new Event("input", { bubbles: true }));
const button = (textContent, onclick, className = "") => create("button", { type: "button", textContent, onclick, className });

// A double click sends a form only once.
addEventListener("submit", (event) => {
  if (!event.defaultPrevented && !event.submitter?.formTarget) { // Otherwise the form stays.
    event.target.dataset.sent ? event.preventDefault() : (event.target.dataset.sent = true);
    setTimeout(() => delete event.target.dataset.sent, 3000);
  }
});

// Times are in the browser's zone, which is named. Without this script, they are in BLOGAPI_TIMEZONE.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const shownTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time[datetime*=T]")) {
  [time.textContent, time.title] = [shownTime.format(new Date(time.dateTime)), zone];
}
for (const field of document.querySelectorAll("input[type=datetime-local]")) {
  const sent = create("input", { type: "hidden", name: field.name, value: field.dataset.time });
  const local = (moment) => new Date(moment - moment.getTimezoneOffset() * 60000);
  const show = (moment) => (field.value = local(moment).toISOString().slice(0, 19));
  field.value && !isNaN(new Date(field.dataset.time)) && show(new Date(field.dataset.time));
  field.addEventListener("input", () => {
    sent.value = field.value ? `${new Date(field.value).toISOString().slice(0, 19)}Z` : "";
  });
  field.removeAttribute("name");
  field.after(sent);
  field.labels[0].textContent = field.labels[0].textContent.replace(/\(.*\)/, `(${zone})`);
  const setTomorrow = () => {
    show(new Date(new Date().setHours(24 + 8, 0, 0, 0)));
    changed(field);
  };
  sent.after(button("Tomorrow 8:00", setTomorrow, "quiet"));
}

// In the browser: what could not be sent yet, one record for each copy. The database is named after the path of the blog,
// because another blog may have the same origin. The result is null if the browser forbids storage, or has no space left.
const copies = document.body.dataset.keepsAt;
const opened = new Promise((resolve, reject) => {
  const opening = indexedDB.open(`blogapi ${copies}`);
  opening.onupgradeneeded = () => opening.result.createObjectStore("copies", { keyPath: "copy" });
  opening.onsuccess = () => resolve(opening.result);
  opening.onerror = reject;
}).catch(() => null);
const inBrowser = async (use) => {
  const database = await opened;
  return new Promise((resolve, reject) => {
    const transaction = database.transaction("copies", "readwrite", { durability: "strict" });
    const asked = use(transaction.objectStore("copies"));
    transaction.oncomplete = () => resolve(asked.result ?? true);
    transaction.onabort = reject;
  }).catch(() => null);
};
const records = {
  all: () => inBrowser((store) => store.getAll()),
  set: (record) => inBrowser((store) => [store.put(record), store.transaction.commit()][0]), // even if the page closes now
  drop: ({ copy, number }) => {
    const onsuccess = ({ target }) => Number(target.result?.number) <= Number(number) && target.source.delete(copy);
    return inBrowser((store) => Object.assign(store.get(copy), { onsuccess }));
  },
};

// On the server: a copy of what is typed, which changes no post. The record is deleted once the server has its number.
const put = async (record, keepalive = false) => {
  const body = new FormData();
  Object.entries(record).forEach(([name, value]) => body.set(name, value));
  if (sizeOf(record) > 4e6) {
    return { status: 413 }; // The server would end the connection.
  }
  const signal = keepalive ? undefined : AbortSignal.timeout(30000);
  const answer = await fetch(copies + record.copy, { method: "PUT", body, keepalive, signal }).catch(() => null);
  const json = await answer?.json().catch(() => null);
  const status = answer?.ok && !json ? 502 : (answer?.status ?? 0); // A proxy can answer, too.
  const isThere = status === 200 || status === 409;
  return { status, isDropped: isThere && (await records.drop(record)) !== null, ...(isThere && json) };
};
const sizeOf = (record) => new Blob(Object.values(record)).size;
const load = async (address, options) =>
  new DOMParser().parseFromString(await fetch(address, options).then((answer) => answer.text(), () => ""), "text/html");
const isRefused = (status) => status >= 400 && status < 500 && ![403, 408, 409, 429].includes(status);
const rescued = !copies ? Promise.resolve([]) : records.all().then((found) => Promise.all((found ?? []).map(async (each) => ({ each, ...(await put(each)) }))));

const content = document.getElementById("content");
const upload = document.getElementById("upload");
const post = content?.form;
if (post) {
  post.autocomplete = "off"; // After Back or a reload, the copy restores what was typed.
  const isField = (each) => each.name && !each.name.endsWith("_token") && !["file", "submit", "button"].includes(each.type);
  const fields = [...post.elements].filter(isField);
  const { number, over, etag, post_id: postId, status, tags, cover_image: cover } = post.elements;
  const typed = () => Object.fromEntries(fields.map((each) => [each.name, each.value]));

  // Status: the bar shows it, and screen readers hear each outcome once.
  const [saving, said] = [document.getElementById("saving"), document.getElementById("said")];
  let announced = "";
  const say = (text, kind = announced, ...buttons) => {
    saving.replaceChildren(text, ...buttons);
    kind === announced || ([said.textContent, announced] = [text, kind]);
  };

  // Sending. idle: the server has all; typing: a timer runs; sending; waiting: for a retry; leaving: Save was pressed.
  let [state, had] = ["idle", Number(number.value)]; // had: the number that the server has
  let [first, tries, timer, rival] = [0, 0, 0, null]; // rival: the copy that was continued elsewhere
  const isUnsent = () => Number(number.value) > had;
  const soon = (next, delay) => {
    state = next;
    clearTimeout(timer);
    timer = setTimeout(send, delay);
  };
  const send = async ({ keepalive = false, asks = false, saves = false } = {}) => {
    clearTimeout(timer);
    if (!isUnsent() && !asks) {
      return 200;
    }
    const [record, isNews] = [typed(), isUnsent()];
    [state, first] = ["sending", 0];
    isNews && say("Saving…");
    const answer = await put(record, keepalive);
    if (state === "leaving") {
      return answer.status;
    }
    for (const [form, name, token] of [[post, "form_token"], [post, "preview_token"], [upload, "form_token", "upload_token"]]) {
      form.elements[name].value = answer[token ?? name] ?? form.elements[name].value; // those of a new session
    }
    const isOld = Number(record.number) < Number(number.value);
    if (answer.status === 200 || answer.status === 409) {
      [had, tries] = [Math.max(had, Number(record.number)), 0];
      isOld ? soon("typing", 2000) : (state = "idle");
      takeIn(answer, record, { isUntouched: !isNews && !isOld && !saves });
    } else if (isRefused(answer.status)) {
      state = "idle"; // A retry would not help; the next key press tries again.
      say("Not saved, but kept in this browser: Save says why.", "refused");
    } else {
      const reason = { 0: "no connection", 403: "the session has ended; open another in a new tab" }[answer.status];
      say(`Not saved: ${reason ?? "the server does not answer"}, kept in this browser`, "failed");
      soon("waiting", [2000, 5000, 10000][tries++] ?? 30000);
    }
    return answer.status;
  };
  const takeIn = (answer, record, { isUntouched }) => {
    const isElsewhere = answer.status === 409;
    const isOther = answer.etag !== undefined && answer.etag !== etag.value && !had;
    if (answer.form !== new URL(post.action).pathname) {
      location.replace(answer.form); // Its post was created meanwhile.
    } else if (isUntouched && (isElsewhere || isOther)) {
      location.reload(); // Nothing was typed here, so show the current text.
    } else if (isElsewhere) {
      ask(answer);
    } else {
      rival = null;
      const time = new Date().toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
      Number(record.number) && say(`Saved ${time}`, "saved");
    }
  };
  const ask = (answer) => {
    rival = answer;
    const where = answer.state === "open" ? `continued on ${answer.browser}, ${shownTime.format(new Date(answer.at))}` : "saved elsewhere";
    const there = answer.form + (postId.value ? "" : `?copy=${answer.over.split(" ")[0]}`);
    const goOn = () => {
      [over.value, number.value] = [rival.over, Number(number.value) + 1];
      send();
    };
    const buttons = [button("Show the other", () => location.assign(there), "quiet"), button("Keep this one", goOn, "quiet")];
    say(`This text was ${where}.`, where, ...buttons);
  };

  // Keeping: what is typed is in the browser within half a second, and on the server within three, or ten if it is long.
  let [isKeeping, isKept] = [false, true];
  const keep = async () => {
    if (!isKeeping && isUnsent()) {
      isKeeping = true;
      const record = typed();
      isKept = (await records.set(record)) !== null;
      setTimeout(() => {
        isKeeping = false;
        record.number !== number.value && keep();
      }, 500);
    }
  };
  post.addEventListener("input", (event) => {
    if (!fields.includes(event.target) && event.target.type !== "datetime-local") {
      return;
    }
    number.value = Number(number.value) + 1;
    keep();
    first ||= Date.now();
    if (!postId.value && !location.search.includes(post.elements.copy.value)) {
      history.replaceState(null, "", `?copy=${post.elements.copy.value}`); // A reload shows this copy.
    }
    if (["idle", "typing", "leaving"].includes(state)) {
      const longest = Math.min(10000, 3000 + content.value.length / 100); // A megabyte costs the server 32 ms.
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
  addEventListener("online", () => state === "waiting" && send());
  const look = () => ["idle", "waiting"].includes(state) && !rival && send({ asks: true }); // It may have been continued elsewhere.
  addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? look() : leave()));
  addEventListener("beforeunload", (event) => isUnsent() && state !== "leaving" && !isKept && event.preventDefault());
  rescued.then((found) => {
    const isOwn = ({ each }) => each.post_id === postId.value && (each.post_id || location.search.includes(each.copy));
    for (const { each, status, isDropped } of isUnsent() ? [] : found.filter(isOwn)) {
      if (status === 200 && isDropped && over.value !== `${each.copy} ${each.number}`) {
        return location.reload(); // The server did not have it yet when it sent this page.
      }
      if (![200, 409].includes(status)) {
        fields.forEach((field) => (field.value = each[field.name] ?? field.value));
        changed(content);
      }
    }
  });

  // Saving: the copy is sent first, so that the page stays if the server is away or the session has ended.
  let [uploads, isSaving] = [Promise.resolve(), false];
  const enqueue = (work) => (uploads = uploads.then(work).catch(() => {}));
  document.querySelector("form[action$='/discard']")?.addEventListener("submit", () => {
    had = Number(number.value); // Nothing more of it is sent.
    records.drop(typed());
  });
  const save = async (submitter) => {
    say("Saving…");
    await uploads;
    const answered = await send({ asks: true, saves: true });
    if (answered === 200 || isRefused(answered)) {
      state = "leaving";
      post.requestSubmit(submitter);
    }
  };
  post.addEventListener("submit", (event) => {
    if (!previews.includes(event.submitter) && state !== "leaving") {
      event.preventDefault();
      isSaving ||= save(event.submitter).finally(() => (isSaving = false));
    }
  });

  // The preview opens below the content.
  const frame = document.querySelector("iframe[name=preview]");
  const previews = [...document.querySelectorAll("[data-preview]")];
  for (const each of previews) {
    each.formTarget = "preview";
    each.addEventListener("click", () => {
      frame.hidden = false;
      frame.scrollIntoView({ block: "nearest" });
    });
  }
  // Existing tags are suggested for the last one, which is being typed.
  const known = [...tags.list.options].map((each) => each.value);
  tags.addEventListener("input", () => {
    const before = tags.value.slice(0, tags.value.lastIndexOf(",") + 1);
    const given = new Set(before.split(",").map((name) => name.trim().replaceAll('"', "").toLowerCase()));
    const quoted = (name) => (/[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
    const others = known.filter((name) => !given.has(name.toLowerCase()));
    tags.list.replaceChildren(...others.map((name) => new Option("", `${before}${before && " "}${quoted(name)}`)));
  });

  // Editing: the browser's undo reverts what this inserts.
  const insert = (text, start = content.selectionStart, end = content.selectionEnd) => {
    content.focus();
    content.setSelectionRange(start, end);
    if (!document.execCommand(text ? "insertText" : "delete", false, text)) {
      content.setRangeText(text, start, end, "end");
      changed(content);
    }
  };

  // Images that are chosen, pasted or dropped are uploaded. A mark in the text keeps their place; the focus stays.
  const hint = document.getElementById("file-hint");
  const file = document.getElementById("file");
  const [extra, shrinks] = [create("label"), create("input", { type: "checkbox", checked: true })];
  extra.append(shrinks, " Shrink photographs wider or taller than 2,560 pixels");
  const smaller = async (image) => {
    const isJpeg = image.type === "image/jpeg";
    const isPhotograph = isJpeg || /\.hei[cf]$/i.test(image.name);
    const picture = isPhotograph && (await createImageBitmap(image).catch(() => null));
    const scale = Math.min(1, 2560 / Math.max(picture?.width, picture?.height));
    if (!picture || (isJpeg && (scale === 1 || !shrinks.checked))) {
      return image;
    }
    const canvas = create("canvas", { width: Math.round(picture.width * scale), height: Math.round(picture.height * scale) });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
    return blob ? new File([blob], image.name.replace(/\.\w+$/, ".jpg")) : image;
  };
  const store = async (image, says = hint) => {
    says.textContent = `Uploading ${image.name} …`;
    const form = new FormData();
    form.set("form_token", upload.elements.form_token.value);
    form.set("file", await smaller(image));
    const page = await load(upload.action, { method: "POST", body: form });
    const found = (id) => page.getElementById(id)?.textContent;
    const failure = page.querySelector("main p")?.textContent ?? "The image was not uploaded: there is no connection.";
    says.textContent = found("address") ? `${image.name} was added.` : failure;
    return { url: found("address"), markdown: found("markdown") };
  };
  const replace = (old, text, start = content.value.indexOf(old)) => {
    const mode = content.selectionStart === start + old.length ? "end" : "preserve"; // The cursor stays after it.
    start >= 0 && content.setRangeText(text, start, start + old.length, mode);
    changed(content);
    return start >= 0;
  };
  let marks = 0;
  const addImages = (files) => {
    const marked = [...files].map((image) => [image, `![Uploading ${image.name.replace(/[[\]\\]/g, "")} ${++marks}…]()`]);
    const end = content.selectionEnd;
    const before = content.value.slice(0, end);
    const lines = marked.map(([, mark]) => mark).join("\n\n");
    const text = /!\[[^\]\n]*\]\([^)\n]*\)$/.test(before) ? `\n\n${lines}` : lines; // Each stands on a line of its own.
    content.setRangeText(text, end, end, "preserve");
    content.setSelectionRange(end + text.length, end + text.length);
    changed(content);
    for (const [image, mark] of marked) {
      enqueue(async () => {
        const { markdown } = await store(image);
        const isLost = markdown && !replace(mark, markdown);
        markdown || replace(`\n\n${mark}`, "") || replace(mark, "");
        hint.textContent = isLost ? `${image.name} was uploaded; its place in the text is gone.` : hint.textContent;
      });
    }
  };
  file.setAttribute("form", "upload"); // Without this script, it is sent with the post.
  [file.multiple, file.accept] = [true, `${file.accept},image/heic,image/heif`];
  document.querySelector("button[name=upload]").remove();
  content.setSelectionRange(content.value.length, content.value.length);
  hint.textContent = "Or paste it, or drop it on the content.";
  hint.before(extra);
  file.addEventListener("change", () => {
    addImages(file.files);
    file.value = ""; // The same file can be chosen again.
  });
  content.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
  const isAddress = (text) => /^https?:\/\/\S+$/.test(text);
  for (const kind of ["paste", "drop"]) {
    content.addEventListener(kind, (event) => {
      const data = event.clipboardData ?? event.dataTransfer;
      const selected = content.value.slice(content.selectionStart, content.selectionEnd);
      const text = data.getData("text/plain").trim();
      if (data.files.length && !data.types.includes("text/plain")) {
        event.preventDefault();
        addImages(data.files);
      } else if (kind === "paste" && isAddress(text) && selected.trim() && !/[\n[\]]/.test(selected) && !isAddress(selected)) {
        event.preventDefault();
        insert(`[${selected}](${text})`);
      }
    });
  }

  // The picker shows the uploaded images, for the text and for the cover.
  const [picker, images] = [create("dialog", {}, { "aria-label": "Images" }), create("ul", { className: "picker" })];
  const field = (textContent, type) => {
    const box = create("label", { textContent });
    picker.append(box);
    return box.appendChild(create("input", { type, dir: "auto" }));
  };
  const search = field("Search by name", "search");
  const alt = field("Description, for those who do not see it (may stay empty)", "text");
  let [choose, next] = [null, ""];
  const [more, all] = [button("More", () => show(next)), upload.action.replace(/\/upload$/, "")];
  const show = async (address) => {
    const isFirst = address !== next;
    next = address;
    const page = await load(address);
    if (next !== address) {
      return; // A later search has begun.
    }
    const found = [...page.querySelectorAll("[data-url]")].map((card) => {
      const press = button(card.querySelector("h2").textContent, () => choose(card.dataset.url, picker.close()));
      press.prepend(create("img", { loading: "lazy", src: card.querySelector("img").src, alt: "" }));
      return create("li").appendChild(press).parentNode;
    });
    const shown = isFirst && !found.length ? [create("li", { textContent: "There are none." })] : found;
    isFirst ? images.replaceChildren(...shown) : images.append(...shown);
    isFirst || found[0]?.firstChild.focus();
    next = page.querySelector(".pages a[rel=next]")?.href ?? "";
    more.hidden = !next;
  };
  const pick = (action, hasText) => () => {
    [choose, search.value, alt.value, alt.parentNode.hidden] = [action, "", "", !hasText];
    picker.showModal();
    show(all);
  };
  search.addEventListener("input", () => show(`${all}?q=${encodeURIComponent(search.value)}`));
  picker.append(images, more, " ", button("Close", () => picker.close()));
  const thumbnail = cover.parentNode.querySelector(".thumbnail") ?? create("img", { className: "thumbnail", alt: "", hidden: true });
  const setCover = (url) => changed(Object.assign(cover, { value: url }));
  cover.addEventListener("input", () => {
    const path = cover.value.split("/images/")[1];
    [thumbnail.hidden, thumbnail.src] = [!path, path ? `${new URL("../images/", all).pathname}${path}` : ""];
  });
  const coverHint = create("p", { className: "hint" }, { role: "status" });
  const coverFile = create("input", { type: "file", accept: file.accept, hidden: true });
  coverFile.addEventListener("change", () => {
    const [image] = coverFile.files;
    coverFile.value = "";
    enqueue(() => store(image, coverHint).then(({ url }) => url && setCover(url)));
  });
  const insertImage = (url) => insert(`![${alt.value.replace(/[[\]\\]/g, "\\$&")}](${url})`, content.selectionEnd);
  file.after(button("Choose an uploaded image", pick(insertImage, true)));
  const quiet = [button("Choose the cover", pick(setCover), "quiet"), button("Upload a cover", () => coverFile.click(), "quiet")];
  cover.after(...quiet, coverFile, thumbnail, coverHint);
  document.body.append(picker);

  // Buttons wrap the selection, or prefix its lines; pressed again, they undo that.
  const selected = () => content.value.slice(content.selectionStart, content.selectionEnd);
  const wrap = (before, after) => {
    const { selectionStart: start, selectionEnd: end, value } = content;
    const text = value.slice(start, end);
    const isWrapped = value.slice(0, start).endsWith(before) && value.slice(end).startsWith(after);
    const from = isWrapped ? start - before.length : start;
    insert(isWrapped ? text : before + text + after, from, isWrapped ? end + after.length : end);
    const place = isWrapped ? from : from + before.length;
    content.setSelectionRange(place, place + text.length);
  };
  const begin = (mark, others = mark) => {
    const { selectionStart, selectionEnd, value } = content;
    const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const end = `${value}\n`.indexOf("\n", selectionEnd);
    const lines = value.slice(start, end).split("\n");
    const added = lines.every((line) => line.startsWith(mark)) ? "" : mark;
    insert(lines.map((line) => added + line.replace(others, "")).join("\n"), start, end);
  };
  const link = async () => {
    const copied = selected() && (await navigator.clipboard?.readText?.().catch(() => ""));
    return isAddress(copied?.trim()) ? insert(`[${selected()}](${copied.trim()})`) : wrap("[", "](https://)");
  };
  const actions = {
    Bold: () => wrap("**", "**"),
    Italic: () => wrap("*", "*"),
    Link: link,
    Heading: () => begin("## ", /^#{1,6} /),
    Quote: () => begin("> "),
    List: () => begin("- ", /^([-*+]|\d+[.)]) /),
    Code: () => (selected().includes("\n") ? wrap("```\n", "\n```") : wrap("`", "`")),
    Image: () => file.click(),
  };
  const tools = create("div", { className: "tools" }, { role: "toolbar", "aria-label": "Formatting" });
  tools.append(...Object.entries(actions).map(([label, action]) => button(label, action, "quiet")));
  const stops = [...tools.children];
  stops.slice(1).forEach((each) => (each.tabIndex = -1)); // A single tab stop; the arrow keys lead on.
  tools.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const target = stops.at((stops.indexOf(event.target) + (step ?? 0)) % stops.length);
    stops.forEach((each) => (each.tabIndex = each === target ? 0 : -1));
    target.focus();
  });
  content.before(tools);
  const keys = { b: actions.Bold, i: actions.Italic, k: actions.Link };
  const saveButton = [...document.querySelectorAll(".bar button")].find((each) => !("preview" in each.dataset));
  addEventListener("keydown", (event) => {
    const key = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase();
    const action = key === "s" ? () => post.requestSubmit(saveButton) : event.target === content && keys[key];
    action && action(event.preventDefault());
  });
  post.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey || event.shiftKey) {
      return;
    }
    if (event.target.tagName === "INPUT") {
      event.preventDefault(); // Otherwise, the first button of the form would be pressed.
      !["published", "scheduled"].includes(status.value) && post.requestSubmit(saveButton);
    } else if (event.target === content && content.selectionStart === content.selectionEnd) {
      const start = content.value.lastIndexOf("\n", content.selectionStart - 1) + 1;
      const line = content.value.slice(start, content.selectionStart);
      const [mark, indent, sign, box] = line.match(/^(\s*)([-*+]|\d{1,9}[.)]) (\[[ xX]\] )?/) ?? [];
      if (mark) {
        event.preventDefault(); // Enter continues a list, and ends it at an empty item.
        const following = /\d/.test(sign) ? `${parseInt(sign, 10) + 1}${sign.at(-1)}` : sign;
        mark === line ? insert("", start) : insert(`\n${indent}${following} ${box ? "[ ] " : ""}`);
      }
    }
  });

  // The number of words, the reading time, and the text direction: `dir=auto` would take minutes for a megabyte.
  const words = create("p", { className: "hint" });
  let counting = 0;
  const count = () => {
    counting = 0;
    const found = content.value.match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu)?.length ?? 0;
    const minutes = Math.ceil(found / 230);
    const plural = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
    content.dir = /^\P{L}*[\u0590-\u08ff\ufb1d-\ufefc]/u.test(content.value.slice(0, 999)) ? "rtl" : "ltr";
    words.textContent = `${plural(found, "word")}, ${plural(minutes, "minute")} to read`;
  };
  content.addEventListener("input", () => (counting ||= setTimeout(count, 300)));
  count();
  content.after(words);

  // The content grows with its text, unless that is so large that it would take long.
  const isTight = () => content.value.length < 1e5 && content.scrollHeight > content.clientHeight + 2;
  const grow = () => isTight() && (content.style.height = `${content.scrollHeight + 4}px`);
  content.addEventListener("input", grow);
  grow();
  visualViewport?.addEventListener("resize", () => {
    const hidden = visualViewport.scale > 1 ? 0 : Math.max(0, innerHeight - visualViewport.height);
    document.querySelector(".bar").style.bottom = `${hidden}px`;
  });
}
