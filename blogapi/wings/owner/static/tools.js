// Tools for the text of a post: buttons and keys for formatting, pasting, the preview, and the word count.
import { bar, isWide, sheet, shortcut, toggleBeside } from "./form.js";
import { copies, create, formOf, load, throttled } from "./owner.js";

const isAddress = (text) => /^https?:\/\/\S*$/.test(text);
const LETTERS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/gu; // scripts that do not put spaces between words
const [MAX_PASTED, MAX_PART] = [4 * 1024 * 1024, 90_000]; // limits in characters of HTML: in total, and per part that the server converts
const MARK = /^([ \t]*(?:> )*)([-*+]|\d{1,9}[.)]|>) (?=(\[[ xX]\] )?)/; // of a list item, which may be a task with a box, or of a quote
const START = /^\s*(?:(?:[-*+>]|\d{1,9}[.)]|#{1,6}|\[[ xX]\]) +)*/; // the marks before the text of a line
const ITEM = /^( *)((?:[-*+]|\d{1,9}[.)])(?: {1,4}(?! )| ))?/; // the start of a line, and the sign of a list item
const isAlike = (sign, other) => sign?.trim().at(-1) === other.trim().at(-1);
const following = (sign) => sign.replace(/\d+/, (number) => Number(number) + 1);
const RULE = /^[ \t]*\|[ \t]*:?-[ \t|:-]*$/m; // the row below the head of a table
const PARTS = /^```[^]*?^```|^(#{1,6} )(.*)|(\*\*)(?=\S)([^*\n]+)(\*\*)|(?<=\])(\((?:[^\s()]|\([^\s()]*\))*\))|(?<![\\*\w])([*_])(?=\S)[^*_\n]+(\7)(?![*\w])/dgm; // the Markdown that `paint` highlights
const KEPT = ["href", "src", "alt", "title", "start", "type", "checked", "open", "datetime"]; // attributes that stay
const LOOSE = /(?:&nbsp;|\u00a0)+(?=[\s<]|$)|(?<=[\s>]|^)(?:&nbsp;|\u00a0)+/g; // no-break spaces beside a tag or a space
const FORMATTED = /<(?:a\s[^>]*href|b|strong|em|i|h[1-6]|li|table|img|blockquote|pre|code|s|del|strike)\b|line-through|(?<![\w-])font-weight:\s*(?:bold|[6-9]00)|(?<![\w-])font-style:\s*italic|mso-list:l|^(?![^]*(?:monospace|menlo|monaco))[^]*<p\b[^]*?<p\b/i; // Terminals of macOS put each line into a <p>.

// Move the chosen list items, and what they contain, one level in (`by` is 1) or out (-1). With 0, begin the chosen lines with the mark, if any, or make paragraphs of them if it is null. Renumber the items.
const arrange = (lines, isChosen, by, mark = "") => {
  let [around, levels] = [[], []]; // the items around the line, outermost first, before and after the change
  return lines.map((line, at) => {
    const text = line.replace(/^[\s\d.)*+-]+/, (start) => start.split("\t").reduce((all, part) => all + " ".repeat(4 - (all.length % 4)) + part));
    const [, indent, own = ""] = ITEM.exec(text);
    const [made, isEnded] = [(isChosen(at) && mark) || own, mark === null && isChosen(at)];
    const column = line.trim() || made ? indent.length : Infinity; // An empty line does not end a list.
    const count = around.filter((each) => each.column < column && !(by && own && column < each.was)).length;
    const [outer, former, level] = [around[count - 1], around[count], (around[count - 1]?.level ?? -1) + 1];
    const isMoved = made && isChosen(at) && !isEnded && !(by && outer?.isMoved) && level + by >= 0 && level + by <= levels.length;
    const place = isMoved ? level + by : level;
    const [parent, sibling] = [levels[place - 1], levels[place]];
    const kind = (by && isMoved && sibling?.sign) || made;
    const isNumbered = isMoved || (own && isAlike(former?.own, own) && (parent !== outer || sibling !== former || sibling?.isNumbered));
    const sign = isEnded ? "" : !isNumbered ? own : isAlike(sibling?.sign, kind) ? following(sibling.sign) : kind.replace(/\d+/, "1");
    const width = isMoved ? (sibling?.width ?? parent?.inner ?? column) : Math.max(0, column - (outer?.was ?? 0) + (parent?.inner ?? 0));
    const item = { column, level: place, width, was: column + own.length, inner: width + sign.length, own, sign, isMoved, isNumbered }; // Its text began in column `was`, and now begins in `inner`.
    [around, levels] = [[around, count], [levels, place]].map(([items, length]) => [...items.slice(0, length), ...(made ? [item] : [])]);
    const gap = (isEnded || (mark === null && isChosen(at - 1))) && line.trim() && lines[at - 1]?.trim() ? "\n" : "";
    return gap + (column === Infinity || (width === column && sign === own) ? line : " ".repeat(width) + sign + text.slice(column + own.length));
  });
};

// Convert a document in parts of at most MAX_PART, one after another. Lists, tables and blocks of code are not divided.
const inParts = (body, convert) => {
  const parts = [""];
  const add = (node) => {
    const text = node.outerHTML ?? (node.nodeType === Node.TEXT_NODE ? new Option(node.textContent).innerHTML : "");
    const isOpened = text.length > MAX_PART && node.matches?.(":not(ul, ol, dl, table, pre)");
    isOpened ? [parts.push(""), node.childNodes.forEach(add), parts.push("")] : parts.at(-1).length + text.length > MAX_PART ? parts.push(text) : (parts[parts.length - 1] += text);
  };
  add(body);
  return Array.fromAsync(parts.filter((each) => each.trim()), convert);
};

export const openTools = (editor, area, { post, say, alarm, images }) => {
  const selection = () => { // without spaces at the ends and marks at the start of a line, because Markdown allows no other marks next to them
    const [[from, to], text] = [editor.selection, editor.doc.slice(...editor.selection)];
    const [start] = (/(^|\n)[ \t]*$/.test(editor.doc.slice(0, from)) ? START : /^\s*/).exec(text);
    return text.slice(start.length).trim() ? [from + start.length, from + text.trimEnd().length] : [from, to];
  };

  // A button wraps the selection, or removes its marks. Without a selection, it then steps over the closing mark, and moves any spaces before it to after it.
  const wrap = (mark, marks, after = mark, [from, to] = selection()) => {
    const [text, start, ahead, behind] = [editor.doc.slice(from, to), from - mark.length, editor.doc.slice(0, from), editor.doc.slice(to)];
    const isClosed = behind.startsWith(after) && behind.search(marks) === 0;
    const paragraph = ahead.slice(ahead.lastIndexOf("\n\n") + 1).replace(/^\s*\* /gm, "");
    if (text.includes("\n") && !mark.includes("\n")) { // Marks end with their line.
      const parts = text.split("\n").map((line, at, all, [start] = START.exec(line)) => [start, line.slice(start.length).trimEnd(), line.slice(Math.max(start.length, line.trimEnd().length))]);
      const areAll = parts.every(([, part]) => !part || (part.search(marks) === 0 && part.endsWith(after)));
      const marked = parts.map(([before, part, space]) => before + (areAll ? part.slice(mark.length, -after.length) : part && mark + part + after) + space).join("\n");
      editor.insert(marked, from, to, [from, from + marked.length]);
    } else if (isClosed && ahead.endsWith(mark)) {
      editor.insert(text, start, to + after.length, [start, start + text.length]);
    } else if (isClosed && from === to && paragraph.match(marks)?.length % 2) {
      editor.insert(after + ahead.slice(ahead.trimEnd().length), ahead.trimEnd().length, to + after.length);
    } else {
      editor.insert(mark + text + after, from, to, [from + mark.length, to + mark.length]);
    }
  };
  const wholeLines = ([from, to]) => [editor.doc.slice(0, from).lastIndexOf("\n") + 1, `${editor.doc}\n`.indexOf("\n", to)];
  // Arrange lines, and replace the part of the text that differs. An end of the selection is a line, and the number of characters after it in that line.
  const put = (lines, ends, ...change) => {
    const [old, arranged] = [editor.doc, arrange(lines, ...change)];
    const text = arranged.join("\n");
    let [head, tail, least] = [0, 0, Math.min(old.length, text.length)]; // head and tail: the lengths of the unchanged start and end
    for (; head < least && old[head] === text[head]; head += 1);
    for (; tail < least - head && old.at(-1 - tail) === text.at(-1 - tail); tail += 1);
    const startOf = (line) => arranged.slice(0, line).join("\n").length + Math.sign(line);
    const placeOf = ([line, rest]) => Math.max(startOf(line), startOf(line + 1) - 1 - rest);
    old === text || editor.insert(text.slice(head, text.length - tail), head, old.length - tail, ends.map(placeOf));
    return old !== text;
  };
  const lineOf = (at) => editor.doc.slice(0, at).split("\n").length - 1;
  const endOf = (at) => [lineOf(at), `${editor.doc}\n`.indexOf("\n", at) - at];
  // The lines stay selected, so that another button can change them. Empty lines do not become list items.
  const begin = (mark, own, others = own) => {
    const [[from, to], lines, [first, last]] = [editor.selection, editor.doc.split("\n"), selection().map(lineOf)];
    const areAll = (kind, all = lines.slice(first, last + 1)) => all.some((line) => kind.test(line)) && all.every((line) => kind.test(line) || !line.trim());
    const [isRemoved, former, isList] = [areAll(own), areAll(own) ? own : areAll(MARK) ? MARK : others, others === MARK];
    const [bare, isChosen] = [(line) => line.replace(isList ? /^\s*> ?/ : former, ""), (at) => first <= at && at <= last];
    const isLeft = (line) => isRemoved || (first < last && mark !== "> " && !bare(line).trim());
    const begun = lines.map((line, at) => (isChosen(at) ? (isList || isLeft(line) ? "" : mark) + bare(line) : line));
    put(begun, from === to ? [endOf(to)] : [[first, isRemoved ? lines[first].replace(own, "").length : Infinity], [last, 0]], (at) => isList && isChosen(at) && (isRemoved || !isLeft(lines[at])), 0, isRemoved ? null : mark);
  };
  const move = (by) => {
    const [lines, [first, last]] = [editor.doc.split("\n"), selection().map(lineOf)];
    return put(lines, editor.selection.map(endOf), (at) => first <= at && at <= last, by) || (ITEM.exec(lines[first].trimStart().replace("\t", " "))[2] && false);
  };
  const tableAt = ([from, to] = editor.selection) => [...editor.doc.matchAll(/(?:^[ \t]*\|.*$\n?)+/gm)].find(({ index, 0: rows }) => index <= from && to <= index + rows.replace(/\n$/, "").length);
  const addRow = (table, at) => editor.insert(`\n|${"  |".repeat(/.*/.exec(table[0])[0].split("|").length - 2)}`, at, at, [at + 3]);
  const toRow = (table = tableAt(), [start, end] = wholeLines(editor.selection)) => (/^[|\s]*$/.test(editor.doc.slice(start, end)) ? editor.insert("\n", start, end) : addRow(table, Math.max(end, table.index + table[0].split("\n", 2).join("\n").length)));
  const toParagraph = ([, end] = wholeLines(editor.selection)) => (/^\n\n(\n\n|$)/.test(editor.doc.slice(end)) ? editor.select(end + 2, end + 2) : editor.insert("\n\n", end, end));
  // In a table, Tab selects the next cell or begins a row, and Shift+Tab selects the cell before.
  const toCell = (isOut, [from, to] = editor.selection, table = tableAt()) => {
    const cells = [...(table?.[0] ?? "").matchAll(/\|([^|\n]*)(?=\|)/g)].filter(([, text]) => !/^\s*:?-+:?\s*$/.test(text)).map(({ index, 1: text }) => [0, text.trim().length].map((at) => table.index + index + 1 + (text.trim() ? text.search(/\S/) : Math.min(1, text.length)) + at));
    const [next, end] = [isOut ? cells.findLast(([, last]) => last < from) : cells.find(([first]) => first > to), table?.index + table?.[0].trimEnd().length];
    next ? editor.select(...next) : table && !isOut && addRow(table, end);
    return table && true;
  };
  const addTable = (at = editor.addBlock("| Title | Title |\n| --- | --- |\n| Cell | Cell |", editor.place(), false)) => editor.select(at + 2, at + 7);
  const widened = (row, at) => `${row.trimEnd()} ${at ? (RULE.test(row) ? "---" : " ") : "Title"} |`;
  const addColumn = ({ index, 0: rows }, end = index + /.*/.exec(rows)[0].trimEnd().length) => editor.insert(rows.replace(/^.*\|[ \t]*$/gm, widened), index, index + rows.length, [end + 1, end + 6]);
  // Enter continues a list, a quote, a table or the indentation of code. In an empty item or row, it ends the list or table or, if the item is nested, moves the item out.
  const proceed = (isShifted) => {
    const [[from, at], [start, end]] = [editor.selection, wholeLines(editor.selection)];
    const line = isShifted || from < at ? "" : editor.doc.slice(start, at);
    const [mark, space, sign = "", box = ""] = MARK.exec(line) ?? /^(\t|\s{2,})/.exec(line) ?? [];
    const added = `\n${space}${sign && `${following(sign)} `}${box && "[ ] "}`;
    const [lines, [next, rest]] = mark ? [(editor.doc.slice(0, at) + added + editor.doc.slice(at)).split("\n"), endOf(at)] : [[], []];
    const [isImage, table] = [line && /^!\[[^\]]*\]\(\S*\)$/.test(editor.doc.slice(start, end)) && (at === end || !line.includes("]")), /^[ \t]*\|/.test(line) && tableAt()];
    const act = isImage ? toParagraph : table && RULE.test(table[0]) ? toRow : sign && line === mark + box && at === end ? () => move(-1) || editor.insert("\n", start, at) : mark && (() => put(lines, [[next + 1, rest]], (each) => sign && each === next + 1, 0));
    return act && [act(), editor.select(...editor.selection)]; // scrolls to it
  };
  const opened = (at = editor.selection[1]) => /^[^\n[\]]*\]\((?=https:\/\/\))/.exec(editor.doc.slice(at))?.[0].length; // the distance to the address, if the caret is in the text of a link that has no address yet
  const toAddress = (at = editor.selection[1] + opened()) => (at ? [editor.select(at, at + 8)] : undefined);
  const leaveLink = ([from, to] = editor.selection) => (/\]\([^\s()]+$/.test(editor.doc.slice(Math.max(0, from - 2000), from)) && editor.doc[to] === ")" ? [editor.select(to + 1, to + 1)] : undefined);
  const link = () => {
    const [[from, to], text] = [selection(), editor.doc.slice(...selection())];
    const [before, address] = isAddress(text) ? ["[", text] : [`[${text}`, "https://"];
    editor.doc.slice(0, from).endsWith("](") || editor.insert(`${before}](${address})`, from, to, before === "[" ? [from + 1] : [to + 3, to + 11]); // Pasting replaces the selected "https://".
  };
  const lastFootnote = () => Math.max(0, ...[...editor.doc.matchAll(/\[\^(\d+)\]:/g)].map((each) => Number(each[1])));
  const actions = {
    Bold: () => wrap("**", /\*\*/g), Italic: () => wrap("*", /(?<![\\*])(?:\*\*)*\*(?!\*)/g),
    Link: () => toAddress() ?? link(), Image: images.open,
    Heading: () => begin(/^## /.test(editor.doc.slice(...wholeLines(selection()))) ? "### " : "## ", /^### /, /^#{1,6} /),
    Quote: () => begin("> ", /^> /),
    List: () => begin("- ", /^\s*[-*+] /, MARK),
    Indent: () => move(1), Outdent: () => move(-1),
    "Numbered list": () => begin("1. ", /^\s*\d+[.)] /, MARK),
    Code: () => (/\n|^\s*$/.test(editor.doc.slice(...wholeLines(selection()))) ? wrap("```\n", /\n```/g, "\n```", wholeLines(selection())) : wrap("`", /`/g)),
    Table: (event, table = tableAt()) => (table ? addColumn(table) : addTable()),
    Footnote: (event, name = lastFootnote() + 1, at = editor.selection[1], end = editor.doc.trimEnd().length) => [editor.insert(`[^${name}]${editor.doc.slice(at, end)}\n\n[^${name}]: `, at, Math.max(at, editor.doc.length)), editor.select(...editor.selection)],
  };
  const stops = [...document.querySelectorAll(".tools button")];
  stops.forEach((each) => each.addEventListener("click", actions[each.textContent]));
  stops[0].parentNode.addEventListener("keydown", ({ target, key }) => target[{ ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[key]]?.focus());
  stops[0].parentNode.addEventListener("focusin", ({ target }) => stops.forEach((each) => (each.tabIndex = each === target ? 0 : -1)));
  let pressed = ""; // the last key: Firefox passes the HTML even after Ctrl+Shift+V, and after Escape, Tab leaves the text
  area.addEventListener("keydown", (event) => {
    actions[{ b: "Bold", i: "Italic", k: "Link" }[shortcut(event)]]?.(event.preventDefault());
    const act = { Enter: proceed, Tab: (isOut) => (isOut ? undefined : toAddress() ?? leaveLink()) ?? toCell(isOut) ?? move(isOut ? -1 : 1) }[event.key];
    event.isComposing || event.ctrlKey || event.metaKey || event.altKey || pressed === "Escape" || act?.(event.shiftKey) === undefined || event.preventDefault();
    event.key === "Shift" || (pressed = shortcut(event) || event.key);
  });

  // Reduce HTML to the parts that the server needs. Replace the styles of word processors with elements.
  const cleaned = (html) => {
    const masked = (tag) => tag.replace(/\s(style|on\w+)\s*=/gi, " data-$1="); // Otherwise, the Content-Security-Policy would report these attributes.
    const inert = html.replace(/<style\b[\s\S]*?<\/style>/gi, "").replace(/<[a-z][^<>]*>/gi, masked).replace(LOOSE, " ");
    const { body } = new DOMParser().parseFromString(inert, "text/html");
    body.querySelectorAll("img[src^='file:']").forEach((each) => each.remove()); // Word copies only the names of its pictures.
    for (const each of body.querySelectorAll("p[data-style*='mso-list:l']")) { // In Word, an item is a paragraph with a level: see `listed`.
      const [level, mark] = [/mso-list:\S+\s+level([1-9])/.exec(each.dataset.style)?.[1] ?? "1", each.querySelector("[data-style*=Ignore]")];
      each.prepend(`\ue000${level}${/^\s*\(?(\d+|[a-z])[.)]/i.test(mark?.textContent ?? "") ? "1." : "-"} `);
      mark?.remove();
    }
    body.querySelectorAll("p[class*=Quote]").forEach((each) => each.replaceWith(create("blockquote", { innerHTML: each.outerHTML }))); // from Word
    body.querySelectorAll("li, blockquote").forEach((each) => each.textContent.trim() || each.querySelector("img, input") || each.remove());
    body.querySelectorAll("a[href*='google.com/url?q=']").forEach((each) => (each.href = new URL(each.href).searchParams.get("q"))); // from Google Docs
    for (const each of body.querySelectorAll("a[href^='#']")) { // Drop links to what was not copied, and marks of such footnotes.
      const [target, isMark] = [CSS.escape(each.getAttribute("href").slice(1)), /^\[?\w{1,3}\]?$/.test(each.textContent.trim())];
      body.querySelector(`[id="${target}"], [name="${target}"]`) || each.replaceWith(...(isMark ? [] : each.childNodes));
    }
    for (const each of body.querySelectorAll("*")) {
      const style = each.getAttribute("data-style") ?? "";
      const isOfFootnote = !/^H\d/.test(each.tagName) && each.matches("a[href*='#'], :has(a[href*='#'])");
      const isKept = ({ name, value }) => KEPT.includes(name) || (isOfFootnote && ["id", "name"].includes(name)) || (name === "class" && /^(PRE|CODE)|highlight-/.test(each.tagName + value)); // the language of a block of code
      [...each.attributes].forEach((attribute) => isKept(attribute) || each.removeAttribute(attribute.name));
      const { fontWeight, fontStyle, textDecorationLine } = create("p", { style }).style; // If the style says nothing, the element does.
      const isBold = fontWeight ? /bold|[6-9]00/.test(fontWeight) : /^(B|STRONG)$/.test(each.tagName);
      const isInStruck = each.closest("s, del, strike"); // The server would leave further formatting of struck words as HTML.
      const isStruck = !isInStruck && textDecorationLine.includes("line-through");
      const isItalic = fontStyle ? fontStyle === "italic" : /^(I|EM)$/.test(each.tagName);
      if (/^(B|STRONG|I|EM|SPAN)$/.test(each.tagName)) {
        const mark = (isBold || isItalic || isStruck) && /^[\s,.;:!?]+/.exec(each.firstChild?.data); // In Markdown, emphasis cannot begin with it.
        mark && each.before(each.firstChild.splitText(mark[0].length).previousSibling);
        const [whole, tags] = [new DocumentFragment(), each.textContent.trim() ? isStruck ? ["del"] : [!isInStruck && isBold && "strong", !isInStruck && isItalic && "em"].filter(Boolean) : []];
        tags.reduce((outer, tag) => outer.appendChild(create(tag)), whole).append(...each.childNodes);
        each.replaceWith(whole);
      }
    }
    return body;
  };
  // The server converts text pasted from a page or a word processor to Markdown, in parts if it is long.
  const convert = (html) => fetch(copies.replace(/copies\/$/, "markdown"), { method: "PUT", body: formOf({ html }), signal: AbortSignal.timeout(20000) }).then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error())));
  const listed = (markdown) => { // Make items of the paragraphs that `cleaned` marked.
    const lines = markdown.replace(/\n\n(?=\ue000)(?<=\ue000.*\n\n)/g, "\n").split("\n");
    return arrange(lines.map((line) => line.replace(/^\ue000([1-9])/, (mark, level) => " ".repeat(4 * level - 4))), (at) => lines[at].startsWith("\ue000"), 0).join("\n");
  };
  const pasteHtml = async (html, text) => {
    say("Pasting…");
    editor.selection[0] === editor.selection[1] || editor.insert("");
    const place = editor.place();
    const markdown = html.length > MAX_PASTED ? [] : await inParts(cleaned(html), convert).catch(() => []);
    await editor.settled();
    const whole = listed(markdown.map((each) => each.trim()).join("\n\n"));
    const numbered = whole.replace(/\[\^(\d+)\]/g, (mark, number) => (whole.includes(`${mark}:`) ? `[^${Number(number) + lastFootnote()}]` : mark)); // after those in the text
    const line = editor.doc.slice(wholeLines([place.at, place.at])[0], place.at);
    const [mark = "", space = "", sign] = MARK.exec(line) ?? [];
    const [isBlock, isList, isEmpty] = [/\n|^#+ /.test(numbered) || MARK.test(numbered), sign !== ">" && MARK.test(numbered), line === mark];
    const inside = isEmpty ? numbered.replace(isList ? MARK : "", "") : sign === ">" ? (isBlock ? "\n\n" : "") + numbered : isList ? `\n${numbered}` : ""; // in the list or quote at the caret
    const prefix = sign === ">" ? mark : space + (isList ? "" : " ".repeat(mark.length - space.length));
    const added = /^[ \t]*\|/.test(line) ? numbered.split("\n").map((each) => each.trim()).filter(Boolean).join(" ") : mark && inside.replaceAll("\n", `\n${prefix}`);
    isBlock && !added ? editor.addBlock(numbered, place, false, place.at) : editor.fill(place, added || numbered || text.replace(/\r\n?/g, "\n"));
    const lost = html.match(/<img\b[^>]*\ssrc=["']?file:/gi)?.length;
    say("");
    alarm("paste", lost ? `${lost} picture${lost > 1 ? "s" : ""} could not be pasted: insert ${lost > 1 ? "them" : "it"} with Image.` : markdown.length ? "" : "Pasted as plain text, because the formatting could not be read.");
  };
  area.addEventListener("paste", (event) => {
    const [html, text] = ["html", "plain"].map((kind) => event.clipboardData.getData(`text/${kind}`));
    const [address, word, end] = [text.trim(), editor.doc.slice(...selection()), editor.selection[1]];
    const uses = [ // The first that applies is taken; otherwise, the browser pastes the text.
      [event.clipboardData.files.length && !text, () => images.add(event.clipboardData.files)],
      [isAddress(address) && opened(), () => editor.insert(address, end + opened(), end + opened() + 8, editor.selection)],
      [isAddress(address) && word.trim() && !/[\n[\]]/.test(word) && !isAddress(word), () => editor.insert(`[${word}](${address})`, ...selection())],
      [pressed !== "shift+v" && FORMATTED.test(html), () => editor.adds(pasteHtml(html, text))],
    ];
    uses.find(([applies]) => applies)?.[1](event.preventDefault());
  });
  const aim = (event, at = [document.caretPositionFromPoint?.(event.clientX, event.clientY)].find((place) => place?.offsetNode === area)?.offset ?? editor.selection[1]) => [event.preventDefault(), area.focus({ preventScroll: true }), area.setSelectionRange(at, at)];
  area.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && aim(event));
  area.addEventListener("drop", (event) => event.dataTransfer.files.length && images.add(event.dataTransfer.files, aim(event)));

  // The preview is shown beside the text or, on a narrow screen, in place of the text, and follows changes.
  const [shown, toggle, layer] = [".preview.shown", "#preview", ".layer"].map((each) => document.querySelector(each));
  let [drawing, isLate] = [null, false];
  const show = (page) => reveal(shown.replaceChildren(...(page.querySelector("main")?.childNodes ?? [setTimeout(follow, 5000) && "The preview cannot be shown right now."])));
  // Align the preview with the caret's row or, if that is out of view, with a row chosen by the scroll position. On a narrow screen, show the caret's block in the middle.
  const reveal = () => {
    const [{ left, top, bottom }, { bottom: under }, caret] = [area.getBoundingClientRect(), stops[0].parentNode.getBoundingClientRect(), editor.selection[1]];
    const [first, last] = [(Math.max(top, under) || innerHeight / 2) + 8, Math.min(bottom, bar.getBoundingClientRect().top) - 8];
    const placeAt = (y, x = area.clientWidth - 2) => (isWide.matches ? document.caretPositionFromPoint?.(left + x, y)?.offset : null) ?? caret;
    const rowEnd = placeAt(first, 1) <= caret && caret <= placeAt(last) ? caret : placeAt(first + ((last - first) * scrollY) / (document.documentElement.scrollHeight - innerHeight || 1));
    const [y] = [...Array(10)].reduce(([low, high]) => (placeAt((low + high) / 2) < rowEnd ? [(low + high) / 2, high] : [low, (low + high) / 2]), [first, last]);
    const place = placeAt(y + 8, 1);
    const [lines, line] = [editor.doc.split("\n"), editor.doc.slice(0, place).split("\n").length - 1];
    const blocks = [...shown.querySelectorAll("[data-line]:not(.footnotes *)")]; // without footnotes, which are out of order
    const spot = (each) => (each ? [lines.slice(0, each.dataset.line).join("\n").length + 1, each.getBoundingClientRect().top] : [editor.doc.length, shown.lastElementChild?.getBoundingClientRect().bottom]);
    const [[start, from], [end, to]] = [blocks.findLast((each) => each.dataset.line <= line) ?? blocks[0], blocks.find((each) => each.dataset.line > line)].map(spot);
    (isWide.matches ? shown : document.documentElement).scrollTop += from + ((to - from) * Math.max(0, place - start)) / (end - start || 1) - y;
  };
  const glance = throttled(() => requestAnimationFrame(reveal), () => area.textLength / 50_000);
  const isMoved = (kind, target) => sheet.dataset.side === "preview" && target !== shown && (isWide.matches || kind === "load"); // An image that finishes loading late moves the text below it.
  ["scroll", "selectionchange", "load"].forEach((kind) => document.addEventListener(kind, ({ target }) => isMoved(kind, target) && glance(), true));
  const follow = () => {
    isLate = Boolean(drawing);
    drawing ??= sheet.dataset.side === "preview" ? load(toggle.formAction, { method: "POST", body: new FormData(post) }).then(show).finally(() => ((drawing = null), isLate && follow())) : null;
  };
  toggle.addEventListener("click", (event) => follow(event.preventDefault(), toggleBeside("preview")));

  // A layer over the text makes headings and bold words bolder, and marks and addresses paler, without changing the width of any letter.
  const [letters, counted] = [layer, document.getElementById("words")].map((each) => each.appendChild(new Text())); // Replacing a node would end the run of typing that one undo takes back.
  const spot = ([startOffset, endOffset]) => new StaticRange({ startContainer: letters, startOffset, endContainer: letters, endOffset });
  const paint = () => {
    letters.data = area.textLength < 30_000 && CSS.supports("field-sizing", "content") && window.Highlight ? editor.doc : "";
    const parts = [...letters.data.matchAll(PARTS)];
    Object.entries({ bold: [2, 4], pale: [1, 3, 5, 6, 7, 8] }).forEach(([name, groups]) => CSS.highlights?.set(name, new Highlight(...groups.flatMap((group) => parts.map(({ indices }) => indices[group]).filter(Boolean).map(spot)))));
  };
  paint(area.addEventListener("input", paint));
  // The word count, the reading time, and the text direction, because `dir=auto` takes minutes for a megabyte.
  const count = () => {
    const text = editor.doc.replace(/\]\([^()\s]*\)/g, "]"); // Addresses are not read.
    const letters = text.match(LETTERS)?.length ?? 0;
    const words = text.replace(LETTERS, " ").match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu)?.length ?? 0;
    const plural = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
    area.dir = layer.dir = /^\P{L}*[\u0590-\u08ff\ufb1d-\ufefc]/u.test(text.slice(0, 999)) ? "rtl" : "ltr";
    const minutes = words + letters && innerWidth > 480 && `${plural(Math.ceil(words / 230 + letters / 500), "minute")} to read`;
    counted.data = [words && plural(words, "word"), letters && plural(letters, "character"), minutes].filter(Boolean).join(", ");
  };
  [count, follow].forEach((each) => editor.changed(each));
};
