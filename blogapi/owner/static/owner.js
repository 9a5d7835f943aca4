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
  if (event.submitter?.formTarget) {
    return; // The form stays.
  }
  if (event.target.dataset.sent) {
    event.preventDefault();
  }
  event.target.dataset.sent = true;
  setTimeout(() => delete event.target.dataset.sent, 3000);
});

// Images that are chosen, pasted or dropped are uploaded, and their Markdown is written where the cursor is.
const content = document.getElementById("content");
const upload = document.getElementById("upload");

async function addImages(files) {
  const said = document.getElementById("file-hint");
  for (const [number, file] of files.entries()) {
    said.textContent = `Uploading ${file.name} …`;
    const form = new FormData();
    form.set("form_token", upload.elements.form_token.value);
    form.set("file", file);
    const answer = await fetch(upload.action, { method: "POST", body: form }).catch(() => null);
    const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
    const image = page.getElementById("markdown")?.textContent;
    if (!image) {
      said.textContent = page.querySelector("main p")?.textContent ?? "The image was not uploaded: there is no connection.";
      return;
    }
    const markdown = number ? `\n\n${image}` : image; // Each stands on a line of its own.
    content.focus();
    if (!document.execCommand("insertText", false, markdown)) {
      content.setRangeText(markdown, content.selectionStart, content.selectionEnd, "end");
    }
    said.textContent = `${file.name} was added.`;
  }
}

if (content && upload) {
  content.setSelectionRange(content.value.length, content.value.length);
  document.getElementById("file-hint").textContent = "Or paste it, or drop it on the content.";
  document.querySelector("button[form=upload]").hidden = true;
  upload.elements.file.addEventListener("change", () => addImages([...upload.elements.file.files]));
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
}

// Times are those of the browser's zone, which is named. Without this script they are UTC.
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
  sent.value = field.value;
  const local = (moment) => new Date(moment - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
  const show = (moment) => (field.value = local(moment));
  if (field.value) {
    show(new Date(`${field.value}Z`));
  }
  field.addEventListener("input", () => {
    sent.value = field.value ? new Date(field.value).toISOString().slice(0, 19) : "";
  });
  field.removeAttribute("name");
  field.after(sent);
  const label = document.querySelector(`label[for=${field.id}]`);
  label.textContent = label.textContent.replace("UTC", zone);
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

// What is typed into a post is kept in the browser, for each tab, and offered again until it is saved.
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
  sent?.forEach(store.remove); // The server has saved it.
}

const post = content?.form;
if (post) {
  const prefix = `blogapi ${new URL(post.action).pathname} `;
  const key = prefix + tab;
  const isNotSaved = document.querySelector(".problem") !== null;
  const fields = [...post.elements].filter((each) => each.id && each.type !== "hidden");
  const typed = () => Object.fromEntries(fields.map((each) => [each.id, each.value]));
  const initial = JSON.stringify(typed());
  const isChanged = () => isNotSaved || JSON.stringify(typed()) !== initial;
  const etag = post.elements.etag; // of the version over which the text is typed
  const keep = () =>
    isChanged() ? store.set(key, { at: new Date().toISOString(), typed: typed(), etag: etag.value }) : store.remove(key);
  let isSending = false;
  let timer = 0;

  const found = store.newest(prefix);
  if (found && JSON.stringify(found.typed) !== initial) {
    const offer = document.createElement("div");
    offer.className = "notice";
    offer.setAttribute("role", "status");
    const text = document.createElement("p");
    text.textContent = `There is a text of ${shownTime.format(new Date(found.at))} that was not saved.`;
    offer.append(text);
    const add = (label, choose) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => {
        store.remove(found.key);
        offer.remove();
        choose();
      });
      offer.append(button);
    };
    add("Take it", () => {
      for (const field of fields.filter((each) => each.id in found.typed)) {
        field.value = found.typed[field.id];
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
      etag.value = found.etag ?? ""; // If the post was changed since, saving shows both.
      keep();
    });
    add("Drop it", () => content.focus());
    post.before(offer);
  }
  post.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(keep, 2000);
  });
  addEventListener("pagehide", keep);
  addEventListener("beforeunload", (event) => {
    if (!isSending && isChanged()) {
      event.preventDefault();
    }
  });
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      post.requestSubmit();
    }
  });

  // After a new session in another tab, the tokens of this page are renewed, so that one press saves.
  addEventListener("visibilitychange", async () => {
    const answer = document.visibilityState === "visible" && (await fetch(post.action.replace(/[?#].*/, "")).catch(() => null));
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
  });

  // The preview opens below the content.
  const frame = document.querySelector("iframe[name=preview]");
  const previews = [...document.querySelectorAll("[data-preview]")];
  for (const button of previews) {
    button.formTarget = "preview";
    button.addEventListener("click", () => (frame.hidden = false));
  }
  post.addEventListener("submit", (event) => {
    if (!previews.includes(event.submitter)) {
      isSending = true;
      keep();
      store.attempt(() => (sessionStorage.blogapiSent = JSON.stringify([key])));
    }
  });

  // The tags that exist are offered for the last one that is being typed.
  const tags = post.elements.tags;
  const known = [...tags.list.options].map((each) => each.value);
  tags.addEventListener("input", () => {
    const before = tags.value.slice(0, tags.value.lastIndexOf(",") + 1);
    const given = new Set(before.split(",").map((name) => name.trim().replaceAll('"', "").toLowerCase()));
    const quoted = (name) => (/[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
    const others = known.filter((name) => !given.has(name.toLowerCase()));
    tags.list.replaceChildren(...others.map((name) => new Option("", `${before}${before && " "}${quoted(name)}`)));
  });
}
