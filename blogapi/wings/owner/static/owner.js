// The page also works without this script, but then the copy buttons stay hidden.
document.querySelectorAll("[data-copies]").forEach((each) => each.addEventListener("click", () => {
  getSelection().selectAllChildren(document.getElementById(each.dataset.copies));
  each.nextElementSibling.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C to copy";
}));

export const create = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
export const changed = (field) => field.dispatchEvent(new Event("input", { bubbles: true }));
export const button = (label, onclick, className = "") => create("button", { type: "button", onclick, className }, ...[label].flat());
// Combine many calls into one, which runs some milliseconds after the first.
export const throttled = (act, delay) => {
  let timer = 0;
  return () => (timer ||= setTimeout(() => [(timer = 0), act()], delay()));
};

// Send a form only once after a double click.
addEventListener("submit", (event) => {
  const [{ dataset }, isOther] = [event.target, event.defaultPrevented || event.submitter?.formTarget]; // With a target, the page stays, and the form can be sent again.
  isOther || (dataset.sent ? event.preventDefault() : (dataset.sent = setTimeout(() => delete dataset.sent, 3000)));
});

// Show times in the browser's time zone, and name the zone. Without this script, times are in BLOGAPI_TIMEZONE.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const shownTime = (text, hasTime = text.length > 10) => { // without the current year
  const date = new Date(hasTime ? text : `${text}T00:00`);
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return date.toLocaleString(undefined, { year, month: "short", day: "numeric", ...(hasTime && { hour: "numeric", minute: "2-digit" }) });
};
document.querySelectorAll("time").forEach((each) => Object.assign(each, { textContent: shownTime(each.dateTime), title: zone }));
for (const field of document.querySelectorAll("input[type=datetime-local]")) {
  const sent = create("input", { type: "hidden", name: field.name, value: field.dataset.time });
  const show = (moment) => (field.value = isNaN(moment) ? "" : new Date(moment - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 16));
  field.value && show(new Date(field.dataset.time));
  const explain = () => {
    const isLater = new Date(field.value) > new Date();
    const kept = field.value && field.form.querySelector("[value=published][data-when]") ? ` Readers will see the date ${shownTime(field.value)}.` : "";
    field.form.querySelectorAll(".effect").forEach((each) => (each.textContent = isLater ? `Readers will not see it until ${shownTime(field.value)}.` : each.dataset.usual + kept));
    field.form.querySelectorAll("[data-when]").forEach((each) => (each.hidden = isLater !== (each.dataset.when === "later")));
  };
  explain();
  const read = () => field.value && `${new Date(field.value).toISOString().slice(0, 19)}Z`;
  field.addEventListener("input", () => read().slice(0, 16) === sent.value.slice(0, 16) || changed(sent, (sent.value = read()))); // Firefox also fires it at the end, without a change.
  ["input", "change"].forEach((kind) => sent.addEventListener(kind, () => explain(kind === "change" && show(new Date(sent.value)))));
  field.removeAttribute("name");
  field.after(sent);
  field.labels[0].textContent = field.labels[0].textContent.replace(/\(.*\)/, `(${zone})`);
  sent.after(button("Tomorrow 8:00", () => changed(field, show(new Date(new Date().setHours(24 + 8, 0, 0, 0)))), "quiet"));
  field.form.querySelector("[value=published][data-when]") && sent.after(button("Now", () => changed(field, (field.value = "")), "quiet"));
}

// A database in the browser keeps text that could not be sent yet, in one record for each copy. Its name contains the path of the blog, because another blog may have the same origin. Without permission or space for storage, results are null.
export const copies = document.body.dataset.keepsAt;
const opened = new Promise((resolve, reject) => {
  const opening = indexedDB.open(`blogapi ${copies}`);
  opening.onupgradeneeded = () => opening.result.createObjectStore("copies", { keyPath: "copy" });
  opening.onsuccess = () => resolve(opening.result);
  opening.onerror = reject;
}).catch(() => null);
const inBrowser = (use) => opened.then((database) => new Promise((resolve, reject) => {
  const transaction = database.transaction("copies", "readwrite", { durability: "strict" });
  const asked = use(transaction.objectStore("copies"));
  transaction.oncomplete = () => resolve(asked.result ?? true);
  transaction.onabort = reject;
})).catch(() => null);
export const records = {
  all: () => inBrowser((store) => store.getAll()),
  set: (record) => inBrowser((store) => [store.put(record), store.transaction.commit()][0]), // The commit stores the record even if the page closes now.
  drop: ({ copy, number }) => inBrowser((store) => Object.assign(store.get(copy), { onsuccess: ({ target }) => Number(target.result?.number) <= Number(number) && target.source.delete(copy) })),
};
// A page also hands over unsent text to the next page in its tab, because that page can load before the database write ends.
export const handOver = (record) => sessionStorage.setItem(copies, JSON.stringify(record));
const handed = copies && JSON.parse(sessionStorage.getItem(copies));
handed && [records.set(handed), handOver(null)];

// Send the typed text to the server, which stores it as a copy without changing the post. Then delete the record here.
export const put = async (record, keepalive = false) => {
  const answer = sizeOf(record) > 4e6 ? new Response(null, { status: 413 }) : await fetch(copies + record.copy, { method: "PUT", body: formOf(record), keepalive, signal: keepalive ? undefined : AbortSignal.timeout(30000) }).catch(() => null); // The server would close the connection on a record this long.
  const json = await answer?.json().catch(() => null);
  const status = answer?.ok && !json ? 502 : (answer?.status ?? 0); // A 200 without JSON comes from a proxy.
  const isThere = status === 200 || status === 409;
  return { status, isThere, dropped: isThere && records.drop(record), ...(isThere && json) };
};
export const formOf = (record, form = new FormData()) => Object.entries(record).forEach(([name, value]) => form.set(name, value)) ?? form;
export const sizeOf = (record) => new Blob(Object.values(record)).size;
export const parse = (html) => new DOMParser().parseFromString(html, "text/html");
export const load = async (address, options) => parse(await fetch(address, options).then((answer) => answer.text(), () => ""));
export const isRefused = (status) => status >= 400 && status < 500 && ![403, 408, 409, 429].includes(status);
export const rescued = copies ? records.all().then((found) => Promise.all((found ?? [handed].filter(Boolean)).map((each) => put(each).then(async (answer) => ({ ...answer, each, isDropped: (await answer.dropped) !== null }))))) : Promise.resolve([]);
// The server sent this page before it received that text, so load the page again, except if that would lose something.
const [isStale, mustStay] = [({ isThere, isDropped }) => isThere && isDropped, "#content, .notice[role]:not([data-saved]), .new, main form:focus-within"];
rescued.then((found) => found.some(isStale) && !document.querySelector(mustStay) && location.reload());
addEventListener("pageshow", ({ persisted }) => persisted && document.querySelector(".posts") && !document.querySelector(mustStay) && location.reload()); // After Back, a list would not show what has been typed since it was left.
