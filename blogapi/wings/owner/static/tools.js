// Tools for the text of a post: buttons and keys for formatting, pasting, the preview, and the word count.
import { isWide, sheet, toggleBeside } from "./form.js";
import { button, create, formOf, load, root, throttled } from "./owner.js";

const isAddress = (text) => /^https?:\/\/\S+$/.test(text);
const LETTERS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/gu; // scripts that do not put spaces between words
const [MAX_PASTED, MAX_PART] = [4 * 1024 * 1024, 90_000]; // limits in characters of HTML: in all, and per part that the server converts
const KEPT = ["href", "src", "alt", "title", "start", "type", "checked", "open", "datetime"]; // attributes that stay
const FORMATTED = /<(?:a\s[^>]*href|b|strong|em|i|h[1-6]|li|table|img|blockquote|pre|code)\b|(?<![\w-])font-weight:\s*(?:bold|[6-9]00)|(?<![\w-])font-style:\s*italic|mso-list:l/i;

// Convert a document in parts of at most MAX_PART, one after another. Lists, tables and blocks of code are not divided.
const inParts = (body, convert) => {
  const parts = [""];
  const frame = body.children.length === 1 && body.innerHTML.length > MAX_PART && body.querySelector(":scope > :not(ul, ol, dl, table, pre)");
  for (const block of (frame || body).childNodes) {
    const text = block.outerHTML ?? (block.nodeType === Node.TEXT_NODE ? new Option(block.textContent).innerHTML : "");
    parts.at(-1).length + text.length > MAX_PART ? parts.push(text) : (parts[parts.length - 1] += text);
  }
  return Array.fromAsync(parts.filter((each) => each.trim()), convert);
};

export const openTools = (editor, { post, say, alarm, images }) => {
  const area = editor.area;
  const selection = () => { // without spaces at the ends, because Markdown allows no marks next to them
    const [[from, to], text] = [editor.selection, editor.doc.slice(...editor.selection)];
    return text.trim() ? [to - text.trimStart().length, from + text.trimEnd().length] : [from, to];
  };
  const selected = () => editor.doc.slice(...selection());

  // A button wraps the selection, or adds a prefix to its lines. Pressed again, it removes the marks.
  const wrap = (before, after) => {
    const [from, to] = selection();
    const [text, start] = [selected(), from - before.length];
    if (editor.doc.slice(Math.max(0, start), to + after.length) === before + text + after) {
      editor.insert(text, start, to + after.length, [start, start + text.length]);
    } else {
      editor.insert(before + text + after, from, to, [from + before.length, to + before.length]);
    }
  };
  const begin = (mark, others = mark) => {
    const [from, to] = editor.selection;
    const [start, end] = [editor.doc.lastIndexOf("\n", from - 1) + 1, `${editor.doc}\n`.indexOf("\n", to)];
    const lines = editor.doc.slice(start, end).split("\n");
    const added = lines.every((line) => line.startsWith(mark)) ? "" : mark;
    editor.insert(lines.map((line) => added + line.replace(others, "")).join("\n"), start, end);
  };
  const link = () => {
    const [[from, to], text] = [selection(), selected()];
    const at = from + text.length + 3;
    editor.insert(`[${text}](https://)`, from, to, text ? [at, at + 8] : [from + 1]); // Pasting an address replaces the selected "https://".
  };
  const addTable = () => {
    const at = editor.selection[1];
    editor.addParagraph("| Title | Title |\n| --- | --- |\n| Cell | Cell |");
    const cell = editor.doc.indexOf("Title", at);
    editor.select(cell, cell + 5);
  };
  const addFootnote = () => {
    const name = Math.max(0, ...[...editor.doc.matchAll(/\[\^(\d+)\]:/g)].map((each) => Number(each[1]))) + 1;
    const [at, end] = [editor.selection[1], editor.doc.trimEnd().length];
    editor.insert(`[^${name}]${editor.doc.slice(at, end)}\n\n[^${name}]: `, at, Math.max(at, editor.doc.length));
  };
  const actions = { // the icon of each (an SVG path in a square of 20 units) and its function
    Bold: ["M5 3h6a3.5 3.5 0 0 1 0 7H5zm0 7h7a3.5 3.5 0 0 1 0 7H5z", () => wrap("**", "**")],
    Italic: ["M8 3h7M5 17h7M12 3 8 17", () => wrap("*", "*")],
    Link: ["m8 12 4-4M9 6l2-2a3.5 3.5 0 0 1 5 5l-2 2m-3 3-2 2a3.5 3.5 0 0 1-5-5l2-2", link],
    Image: ["M2 4h16v12H2zm0 10 5-5 5 5 2-2 4 4M13 7.5h.1", images.open],
    Heading: ["M5 3v14M15 3v14M5 10h10", () => begin("## ", /^#{1,6} /)],
    Quote: ["M8 9H3V4h5v6q0 4-4 6M17 9h-5V4h5v6q0 4-4 6", () => begin("> ")],
    List: ["M8 5h10M8 10h10M8 15h10M3 5h.1M3 10h.1M3 15h.1", () => begin("- ", /^([-*+]|\d+[.)]) /)],
    Numbers: ["M9 5h9M9 10h9M9 15h9M2.5 4 4 3v5M2.5 12.5q2.5-1 2.5.5t-2.5 4H5", () => begin("1. ", /^([-*+]|\d+[.)]) /)],
    Code: ["m7 5-5 5 5 5m6-10 5 5-5 5", () => (selected().includes("\n") ? wrap("```\n", "\n```") : wrap("`", "`"))],
    Table: ["M2 4h16v12H2zm0 4h16M2 12h16M10 4v12", addTable],
    Footnote: ["m3 8 7 9m0-9-7 9M14 4l2-1v6", addFootnote],
  };
  const tools = create("div", { className: "tools" }, { role: "toolbar", "aria-label": "Formatting" });
  for (const [title, [path, action]] of Object.entries(actions)) {
    const tool = Object.assign(button("", action, "quiet"), { title });
    tool.tabIndex = tools.children.length ? -1 : 0; // The toolbar is a single tab stop; arrow keys move inside it.
    tool.innerHTML = `<svg viewBox="0 0 20 20"><path d="${path}"/></svg><span class="unseen">${title}</span>`;
    tools.append(tool);
  }
  const stops = [...tools.children];
  tools.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const target = stops.at((stops.indexOf(event.target) + (step ?? 0)) % stops.length);
    stops.forEach((each) => (each.tabIndex = each === target ? 0 : -1));
    target.focus();
  });
  tools.addEventListener("mousedown", (event) => event.preventDefault()); // The text keeps the focus.
  area.before(tools);
  let isPlain = false; // set by Ctrl+Shift+V, because Firefox passes the HTML even then
  area.addEventListener("keydown", (event) => {
    const key = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase();
    const [, action] = (!event.shiftKey && actions[{ b: "Bold", i: "Italic", k: "Link" }[key]]) || [];
    action && action(event.preventDefault());
    isPlain = event.shiftKey && key === "v";
  });

  // Reduce HTML to the parts that the server needs. Replace the styles of word processors with elements.
  const cleaned = (html) => {
    const masked = (tag) => tag.replace(/\s(style|on\w+)\s*=/gi, " data-$1="); // Otherwise, the Content-Security-Policy would report these attributes.
    const inert = html.replace(/<style\b[\s\S]*?<\/style>/gi, "").replace(/<[a-z][^<>]*>/gi, masked);
    const { body } = new DOMParser().parseFromString(inert, "text/html");
    const lists = []; // those around the last item in Word
    for (const each of body.querySelectorAll("p[data-style*='mso-list:l']")) {
      const level = /mso-list:\S+\s+level(\d)/.exec(each.dataset.style)?.[1] ?? "1";
      const mark = each.querySelector("[data-style*=Ignore]");
      const kind = /^\s*\(?(\d+|[a-z])[.)]/i.test(mark?.textContent ?? "") ? "OL" : "UL";
      mark?.remove();
      const continues = ({ dataset, tagName }) => dataset.level < level || (dataset.level === level && tagName === kind);
      lists.length = each.previousElementSibling === lists[0] ? lists.findLastIndex(continues) + 1 : 0;
      if (lists.at(-1)?.dataset.level !== level) {
        const list = create(kind, {}, { "data-level": level });
        lists.length ? lists.at(-1).lastChild.append(list) : each.before(list);
        lists.push(list);
      }
      lists.at(-1).append(create("li", { innerHTML: each.innerHTML }));
      each.remove();
    }
    for (const each of body.querySelectorAll("*")) {
      const style = each.getAttribute("data-style") ?? "";
      const isKept = ({ name, value }) => KEPT.includes(name) || (name === "class" && /^(PRE|CODE)|highlight-/.test(each.tagName + value)); // the language of a block of code
      [...each.attributes].forEach((attribute) => isKept(attribute) || each.removeAttribute(attribute.name));
      const { fontWeight, fontStyle } = create("p", { style }).style; // If the style says nothing, the element does.
      const isBold = fontWeight ? /bold|[6-9]00/.test(fontWeight) : /^(B|STRONG)$/.test(each.tagName);
      const isItalic = fontStyle ? fontStyle === "italic" : /^(I|EM)$/.test(each.tagName);
      if (/^(B|STRONG|I|EM|SPAN)$/.test(each.tagName)) {
        const [whole, tags] = [new DocumentFragment(), [isBold && "strong", isItalic && "em"].filter(Boolean)];
        tags.reduce((outer, tag) => outer.appendChild(create(tag)), whole).append(...each.childNodes);
        each.replaceWith(whole);
      }
    }
    return body;
  };
  // The server converts text pasted from a page or a word processor to Markdown, in parts if it is long. The editor marks
  // the place of insertion, so text typed in the meantime stays after the pasted text. Ctrl+Shift+V pastes plain text.
  const convert = async (html) => {
    const options = { method: "PUT", body: formOf({ html }), signal: AbortSignal.timeout(20000) };
    const answer = await fetch(`${root}/markdown`, options);
    return answer.ok ? (await answer.text()).trim() : Promise.reject(new Error());
  };
  const pasteHtml = async (html, text) => {
    say("Pasting…");
    editor.selection[0] === editor.selection[1] || editor.insert("");
    const place = editor.place();
    const markdown = html.length > MAX_PASTED ? [] : await inParts(cleaned(html), convert).catch(() => []);
    await editor.settled();
    editor.fill(place, markdown.join("\n\n") || text.replace(/\r\n?/g, "\n"));
    alarm("paste", markdown.length ? "" : "Pasted as plain text, because the formatting could not be read.");
  };
  area.addEventListener("paste", (event) => {
    const data = event.clipboardData;
    const [html, text] = [data.getData("text/html"), data.getData("text/plain")];
    const [address, word] = [text.trim(), selected()];
    if (data.files.length && !text) {
      images.add(data.files);
    } else if (isAddress(address) && word.trim() && !/[\n[\]]/.test(word) && !isAddress(word)) {
      editor.insert(`[${word}](${address})`, ...selection());
    } else if (FORMATTED.test(html) && !isPlain && !editor.composing) {
      editor.adds(pasteHtml(html, text));
    } else {
      return;
    }
    event.preventDefault();
  });
  area.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
  const drop = (event) => event.dataTransfer.files.length && images.add(event.dataTransfer.files, event.preventDefault());
  area.addEventListener("drop", drop);

  // The preview is shown beside the text or, on a narrow screen, in place of the text, and follows changes.
  const shown = create("section", { className: "preview shown", tabIndex: 0 }, { "aria-label": "Preview" });
  document.getElementById("page").after(shown);
  const toggle = document.getElementById("preview");
  let [drawing, isLate] = [null, false];
  const draw = async () => {
    const page = await load(toggle.formAction, { method: "POST", body: new FormData(post) });
    shown.replaceChildren(...(page.querySelector("main")?.childNodes ?? ["The preview cannot be shown now."]));
    reveal();
  };
  const reveal = () => { // Show the block with the caret.
    const [at, text] = [editor.selection[1], editor.doc];
    const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, `${text}\n`.indexOf("\n", at));
    const words = (line.match(/[\p{L}\p{N}][\p{L}\p{N} ,;’-]*/gu) ?? []).sort((one, other) => other.length - one.length)[0]?.trim();
    const block = [...shown.querySelectorAll("p, li, h1, h2, h3, h4, pre, td")].find((each) => words && each.textContent.includes(words));
    block?.scrollIntoView({ block: isWide.matches ? "nearest" : "center" });
  };
  const follow = () => {
    isLate = Boolean(drawing);
    drawing ??= sheet.dataset.side === "preview" ? draw().finally(() => ((drawing = null), isLate && follow())) : null;
  };
  const followCaret = () => document.activeElement === area && sheet.dataset.side === "preview" && reveal();
  document.addEventListener("selectionchange", throttled(followCaret, () => 200));
  toggle.addEventListener("click", (event) => {
    event.preventDefault();
    toggleBeside("preview");
    follow();
  });

  // The word count, the reading time, and the text direction, because `dir=auto` takes minutes for a megabyte.
  const words = create("p", { className: "hint" });
  const count = () => {
    const text = editor.doc;
    const letters = text.match(LETTERS)?.length ?? 0;
    const found = text.replace(LETTERS, " ").match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu)?.length ?? 0;
    const plural = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
    area.dir = /^\P{L}*[\u0590-\u08ff\ufb1d-\ufefc]/u.test(text.slice(0, 999)) ? "rtl" : "ltr";
    const counted = [found && plural(found, "word"), letters && plural(letters, "character")].filter(Boolean).join(", ") || "0 words";
    words.textContent = `${counted}, ${plural(Math.ceil(found / 230 + letters / 500), "minute")} to read`;
    area.classList.toggle("long", text.length > 100_000); // A long text scrolls inside its field, because the layout of the whole page would be slow.
  };
  editor.changed(count);
  editor.changed(follow);
  count();
  area.after(words);
};
