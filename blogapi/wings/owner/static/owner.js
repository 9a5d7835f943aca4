// The page works without this script. Its buttons that copy are hidden then.
for (const button of document.querySelectorAll("[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copies);
    getSelection().selectAllChildren(source);
    const copied = await navigator.clipboard?.writeText(source.textContent).then(() => true, () => false);
    const said = copied || document.execCommand("copy") ? "Copied" : "Press Ctrl+C to copy";
    button.nextElementSibling.textContent = said;
  });
}

// A double click sends a form once.
addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.submitter?.formTarget) {
    return; // The form stays.
  }
  if (event.target.dataset.sent) {
    event.preventDefault();
  }
  event.target.dataset.sent = true;
  setTimeout(() => delete event.target.dataset.sent, 3000);
});

// Times are those of the browser's zone, which is named. Without this script they are of BLOGAPI_TIMEZONE.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const shownTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time")) {
  if (time.dateTime.includes("T")) {
    time.textContent = shownTime.format(new Date(time.dateTime));
    time.title = zone;
  }
}
for (const field of document.querySelectorAll("input[type=datetime-local]")) {
  const sent = document.createElement("input");
  sent.type = "hidden";
  sent.name = field.name;
  sent.value = field.dataset.time;
  const local = (moment) => new Date(moment - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
  const show = (moment) => (field.value = local(moment));
  if (field.value && !isNaN(new Date(field.dataset.time))) {
    show(new Date(field.dataset.time));
  }
  field.addEventListener("input", () => {
    sent.value = field.value ? `${new Date(field.value).toISOString().slice(0, 19)}Z` : "";
  });
  field.removeAttribute("name");
  field.after(sent);
  const label = document.querySelector(`label[for=${field.id}]`);
  label.textContent = label.textContent.replace(/\(.*\)/, `(${zone})`);
  const tomorrow = document.createElement("button");
  tomorrow.type = "button";
  tomorrow.className = "quiet";
  tomorrow.textContent = "Tomorrow 8:00";
  tomorrow.addEventListener("click", () => {
    const moment = new Date();
    moment.setDate(moment.getDate() + 1);
    moment.setHours(8, 0, 0, 0);
    show(moment);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  sent.after(tomorrow);
}

// Storing: what is typed into a post is kept in the browser, for each tab, and offered again until it is saved.
const store = {
  // A browser can forbid to keep anything, or be full.
  attempt(action) {
    try {
      return action();
    } catch {
      return null;
    }
  },
  set: (key, value) => store.attempt(() => localStorage.setItem(key, JSON.stringify(value))),
  remove: (key) => store.attempt(() => localStorage.removeItem(key)),
  newest: (prefix) =>
    store.attempt(() =>
      Object.keys(localStorage)
        .filter((key) => key.startsWith(prefix))
        .map((key) => ({ key, ...JSON.parse(localStorage.getItem(key)) }))
        .reduce((one, other) => (one && one.at > other.at ? one : other), null),
    ),
};
const tab = store.attempt(() => (sessionStorage.blogapiTab ??= String(Math.random())));
const sent = store.attempt(() => JSON.parse(sessionStorage.blogapiSent ?? "[]"));
store.attempt(() => delete sessionStorage.blogapiSent);
if (document.querySelector(".notice")) {
  // The server has saved it.
  sent?.forEach((key) => {
    store.remove(key);
    store.attempt(() => (sessionStorage[key] = "saved"));
  });
}

const create = (name, properties = {}, attributes = {}) => {
  const element = Object.assign(document.createElement(name), properties);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  return element;
};
const button = (label, press, className = "") => {
  const made = create("button", { type: "button", textContent: label, className });
  made.addEventListener("click", press);
  return made;
};

const content = document.getElementById("content");
const upload = document.getElementById("upload");
const post = content?.form;
if (post) {
  const prefix = () => `blogapi ${new URL(post.action).pathname} `;
  const isNotSaved = document.querySelector(".problem") !== null;
  const { etag, form_token: token, nonce, status, tags } = post.elements;
  const fields = [...post.elements].filter((each) => each.id && !["hidden", "file"].includes(each.type));
  const typed = () => Object.fromEntries(fields.map((each) => [each.id, each.value]));
  let initial = JSON.stringify(typed());
  const isChanged = () => isNotSaved || JSON.stringify(typed()) !== initial;
  // The version over which the text is typed, and the form that creates a post once, are kept, too.
  const keep = () => {
    const kept = { at: new Date().toISOString(), typed: typed(), etag: etag.value, nonce: nonce.value };
    return (isChanged() ? store.set(prefix() + tab, kept) : store.remove(prefix() + tab)) !== null;
  };
  // After Back, a browser types the old text again, over the post as it is now: only if that was neither kept nor saved.
  post.autocomplete = store.attempt(() => sessionStorage[prefix() + tab]) ? "off" : "on";
  let isSending = false;

  const found = store.newest(prefix());
  if (found && JSON.stringify(found.typed) !== initial) {
    const offer = create("div", { className: "notice" }, { role: "status" });
    const text = `There is a text of ${shownTime.format(new Date(found.at))} that was not saved.`;
    const choose = (action) => () => {
      store.remove(found.key);
      offer.remove();
      action();
    };
    const take = () => {
      for (const field of fields.filter((each) => each.id in found.typed)) {
        field.value = found.typed[field.id];
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
      etag.value = found.etag ?? ""; // If the post was changed since, saving shows both.
      nonce.value = found.nonce ?? nonce.value; // If the draft was created since, it is that one.
      keep();
      save();
    };
    offer.append(create("p", { textContent: text }), button("Take it", choose(take)));
    offer.append(button("Drop it", choose(() => content.focus())));
    post.before(offer);
  }

  // Saving: a draft saves itself three seconds after the last key, and when the page is left.
  const said = create("span", { className: "hint" });
  document.querySelector(".save").append(said);
  const isDraft = ![...status.options].some((each) => each.defaultSelected && each.value !== "draft");
  const savesItself = () => isDraft && !isNotSaved && status.value === "draft";
  const reasons = { 403: "The session has ended", 412: "The post was changed elsewhere; Save shows both" };
  let saving = null;
  let hasFailed = false;
  let isAway = false;
  let timer = 0;
  const tell = (text, isWrong) => {
    hasFailed = isWrong;
    isWrong ? said.setAttribute("role", "alert") : said.removeAttribute("role");
    said.textContent = text;
  };
  const outlivesPage = () => new Blob([JSON.stringify(typed())]).size < 60000; // Browsers send no more than 64 KiB then.
  const send = async () => {
    const sentText = JSON.stringify(typed());
    const body = new FormData(post);
    body.set("autosave", "on");
    const keepalive = outlivesPage();
    const answer = await fetch(post.action, { method: "POST", body, keepalive }).catch(() => null);
    const saved = answer?.ok && (await answer.json().catch(() => null));
    if (!saved) {
      const reason = answer ? (reasons[answer.status] ?? "Save says why") : "There is no connection";
      isAway = !answer || answer.status === 503;
      return tell(`Not saved, but kept in this browser. ${reason}.`, true);
    }
    store.remove(prefix() + tab);
    initial = sentText;
    [etag.value, token.value] = [saved.etag, saved.form_token];
    if (post.getAttribute("action") !== saved.action) {
      post.setAttribute("action", saved.action);
      history.replaceState(null, "", saved.action);
      [...post.querySelectorAll("button.primary")].forEach((each) => (each.textContent = "Save"));
      document.querySelector("h1").textContent = "Edit";
    }
    const time = new Date().toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
    return tell(`Saved ${time}`, false);
  };
  const save = () => {
    if (!saving && savesItself() && isChanged() && (content.value.trim() || post.elements.title.value.trim())) {
      saving = send().finally(() => {
        saving = null;
        if (isChanged() && !isSending && (!hasFailed || isAway)) {
          wait(hasFailed ? 15000 : 3000); // what was typed meanwhile, or again
        }
      });
    }
  };
  const wait = (delay) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      keep();
      save();
    }, delay);
  };
  const leave = () => {
    if (!isSending) {
      post.autocomplete = keep() ? "off" : "on";
      save();
    }
  };
  post.addEventListener("input", () => wait(3000));
  addEventListener("pagehide", leave);
  addEventListener("beforeunload", (event) => {
    if (!isSending && isChanged() && (hasFailed || !savesItself() || !outlivesPage())) {
      event.preventDefault();
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
  post.addEventListener("submit", (event) => {
    if (previews.includes(event.submitter)) {
      return;
    }
    if (saving) {
      event.preventDefault(); // It would create a second post, or meet a version that is not known here.
      saving.then(() => post.requestSubmit(event.submitter));
      return;
    }
    isSending = true;
    keep();
    post.autocomplete = "on"; // until the next page says that it was saved
    store.attempt(() => {
      sessionStorage.removeItem(prefix() + tab);
      sessionStorage.blogapiSent = JSON.stringify([prefix() + tab]);
    });
  });

  // After a new session in another tab, the tokens of this page are renewed, so that one press saves. A post that was
  // changed elsewhere is shown as it is now, if nothing was typed over it.
  addEventListener("visibilitychange", async () => {
    if (document.visibilityState !== "visible") {
      leave();
      return;
    }
    const answer = await fetch(post.action.replace(/[?#].*/, "")).catch(() => null);
    if (!answer?.ok) {
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const form of [post, upload]) {
      const fresh = page.querySelector(`form[action="${form.getAttribute("action")}"]`);
      for (const name of ["form_token", "preview_token"]) {
        const value = fresh?.querySelector(`[name=${name}]`)?.value;
        if (value) {
          form.elements[name].value = value;
        }
      }
    }
    const now = page.querySelector("[name=etag]")?.value;
    if (now && now !== etag.value && !isChanged() && !saving && !isSending) {
      location.reload();
    }
  });

  // The tags that exist are offered for the last one that is being typed.
  const known = [...tags.list.options].map((each) => each.value);
  tags.addEventListener("input", () => {
    const before = tags.value.slice(0, tags.value.lastIndexOf(",") + 1);
    const given = new Set(before.split(",").map((name) => name.trim().replaceAll('"', "").toLowerCase()));
    const quoted = (name) => (/[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
    const others = known.filter((name) => !given.has(name.toLowerCase()));
    tags.list.replaceChildren(...others.map((name) => new Option("", `${before}${before && " "}${quoted(name)}`)));
  });

  // Images that are chosen, pasted or dropped are uploaded, and their Markdown is written where the cursor is.
  const hint = document.getElementById("file-hint");
  const insert = (text, start = content.selectionStart, end = content.selectionEnd) => {
    content.focus();
    content.setSelectionRange(start, end);
    if (!document.execCommand(text ? "insertText" : "delete", false, text)) {
      content.setRangeText(text, start, end, "end");
      content.dispatchEvent(new Event("input", { bubbles: true }));
    }
  };
  let added = ""; // the Markdown of the last image
  const addImages = async (files) => {
    for (const file of files) {
      hint.textContent = `Uploading ${file.name} …`;
      const form = new FormData();
      form.set("form_token", upload.elements.form_token.value);
      form.set("file", file);
      const answer = await fetch(upload.action, { method: "POST", body: form }).catch(() => null);
      const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
      const image = page.getElementById("markdown")?.textContent;
      if (!image) {
        hint.textContent = page.querySelector("main p")?.textContent ?? "The image was not uploaded: there is no connection.";
        return;
      }
      const isAfterOne = added && content.value.slice(0, content.selectionStart).endsWith(added);
      insert(isAfterOne ? `\n\n${image}` : image); // Each stands on a line of its own.
      added = image;
      hint.textContent = `${file.name} was added.`;
    }
  };
  const file = document.getElementById("file");
  file.setAttribute("form", "upload"); // Only without this script, it is sent with the post.
  document.querySelector("button[name=upload]").hidden = true;
  content.setSelectionRange(content.value.length, content.value.length);
  hint.textContent = "Or paste it, or drop it on the content.";
  file.addEventListener("change", () => addImages([...file.files]));
  content.addEventListener("dragover", (event) => {
    if (event.dataTransfer.types.includes("Files")) {
      event.preventDefault();
    }
  });
  for (const kind of ["paste", "drop"]) {
    content.addEventListener(kind, (event) => {
      const data = event.clipboardData ?? event.dataTransfer;
      if (data.files.length && !data.types.includes("text/plain")) {
        event.preventDefault();
        addImages([...data.files]);
      }
    });
  }

  // The picker shows the images that are there, for the text and for the cover.
  const picker = create("dialog", {}, { "aria-label": "Images" });
  const images = create("ul", { className: "picker" });
  const field = (label, type) => {
    const box = create("label", { textContent: label });
    box.append(create("input", { type }));
    picker.append(box);
    return box.lastChild;
  };
  const search = field("Search by name", "search");
  const alt = field("Description, for those who do not see it (may stay empty)", "text");
  picker.append(images, button("Close", () => picker.close()));
  let choose = () => {};
  const show = async () => {
    const name = search.value;
    const answer = await fetch(upload.action.replace(/\/upload$/, `?q=${encodeURIComponent(name)}`)).catch(() => null);
    const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
    if (name !== search.value) {
      return; // What was typed since is being looked for.
    }
    const found = [...page.querySelectorAll(".card[data-url]")].map((card) => {
      const item = create("li");
      const press = button(card.querySelector("h2").textContent, () => {
        picker.close();
        choose(card.dataset.url);
      });
      press.prepend(create("img", { src: card.querySelector("img").src, alt: "", loading: "lazy" }));
      item.append(press);
      return item;
    });
    images.replaceChildren(...(found.length ? found : [create("li", { textContent: "There are none." })]));
  };
  const pick = (action, hasText) => () => {
    [choose, search.value, alt.value, alt.parentNode.hidden] = [action, "", "", !hasText];
    picker.showModal();
    show();
  };
  search.addEventListener("input", show);
  const cover = post.elements.cover_image;
  const setCover = (url) => {
    cover.value = url;
    cover.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const insertImage = (url) => insert(`![${alt.value.replace(/[[\]\\]/g, "\\$&")}](${url})`);
  file.after(button("Choose an uploaded image", pick(insertImage, true)));
  cover.after(button("Choose the cover", pick(setCover, false), "quiet"));
  document.body.append(picker);

  // Buttons wrap what is selected, or begin its lines. The browser's undo takes that back.
  const wrap = (before, after) => {
    const { selectionStart: start, selectionEnd: end, value } = content;
    const text = value.slice(start, end);
    const isWrapped = value.slice(0, start).endsWith(before) && value.slice(end).startsWith(after);
    const from = isWrapped ? start - before.length : start;
    insert(isWrapped ? text : before + text + after, from, isWrapped ? end + after.length : end);
    const place = isWrapped ? from : from + before.length;
    content.setSelectionRange(place, place + text.length);
  };
  const begin = (mark) => {
    const { selectionStart, selectionEnd, value } = content;
    const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const end = value.indexOf("\n", selectionEnd) < 0 ? value.length : value.indexOf("\n", selectionEnd);
    const marked = value.slice(start, end).replace(/^/gm, mark);
    insert(marked, start, end);
  };
  const isLong = () => content.value.slice(content.selectionStart, content.selectionEnd).includes("\n");
  const actions = {
    Bold: () => wrap("**", "**"),
    Italic: () => wrap("*", "*"),
    Link: () => wrap("[", "](https://)"),
    Heading: () => begin("## "),
    Quote: () => begin("> "),
    List: () => begin("- "),
    Code: () => (isLong() ? wrap("```\n", "\n```") : wrap("`", "`")),
    Image: () => file.click(),
  };
  const tools = create("div", { className: "tools" }, { role: "toolbar", "aria-label": "Formatting" });
  tools.append(...Object.entries(actions).map(([label, action]) => button(label, action, "quiet")));
  const stops = [...tools.children];
  stops.slice(1).forEach((each) => (each.tabIndex = -1)); // One stop of the tab key; the arrow keys lead on.
  tools.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const next = stops.at((stops.indexOf(event.target) + step) % stops.length);
      stops.forEach((each) => (each.tabIndex = each === next ? 0 : -1));
      next.focus();
    }
  });
  content.before(tools);
  const keys = { b: actions.Bold, i: actions.Italic, k: actions.Link };
  addEventListener("keydown", (event) => {
    const key = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase();
    const action = key === "s" ? () => post.requestSubmit() : event.target === content && keys[key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  // The words, and the minutes that reading them takes.
  const words = create("p", { className: "hint" });
  const count = () => {
    const found = content.value.match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu)?.length ?? 0;
    const minutes = Math.ceil(found / 230);
    const plural = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
    words.textContent = `${plural(found, "word")}, ${plural(minutes, "minute")} to read`;
  };
  let counting = 0;
  content.addEventListener("input", () => {
    clearTimeout(counting);
    counting = setTimeout(count, 300);
  });
  count();
  content.after(words);
}
