// Images in the form of a post: uploaded while the writer goes on, picked from those that are there, or used as the cover.
import { button, changed, create, load } from "./owner.js";

export const openImages = (editor, { post, upload, say, alarm }) => {
  const [hint, file, cover] = [document.getElementById("file-hint"), document.getElementById("file"), post.elements.cover_image];
  let uploads = Promise.resolve();
  const enqueue = (work) => editor.adds((uploads = uploads.then(work).catch(() => {})));

  // Photographs are made smaller first, unless the box is cleared.
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
  const store = async (image) => {
    say(`Uploading ${image.name}…`);
    alarm("image");
    const form = new FormData();
    form.set("form_token", upload.elements.form_token.value);
    form.set("file", await smaller(image));
    const page = await load(upload.action, { method: "POST", body: form });
    const found = (id) => page.getElementById(id)?.textContent;
    const reason = page.querySelector("main p")?.textContent ?? "There is no connection.";
    const url = found("address");
    say(url ? `${image.name} was added.` : "", image);
    url || alarm("image", `${image.name} was not added. ${reason}`);
    return { url, markdown: found("markdown") };
  };

  // An image becomes a paragraph of its own, after the line in which it was added.
  const addParagraph = (markdown, at) => {
    const text = editor.doc;
    const end = `${text}\n`.indexOf("\n", at);
    const [before, after] = [text.slice(0, end), text.slice(end)];
    const start = /(^|\n)$/.test(before) ? (/(^|\n\n)$/.test(before) || before === "\n" ? "" : "\n") : "\n\n";
    const rest = after.startsWith("\n\n") ? "" : after ? "\n" : "\n\n";
    const added = start + markdown + rest;
    const isHere = editor.selection.every((each) => each === end) && !rest.trim() && after === "";
    isHere && document.activeElement === editor.area ? editor.insert(added, end, end) : editor.replace(added, end);
  };
  const add = (files, at = editor.selection[1]) => {
    for (const image of files) {
      const place = editor.place(at);
      enqueue(async () => {
        const { markdown } = await store(image);
        await editor.settled();
        markdown && addParagraph(markdown, place.at);
        place.end();
      });
    }
  };
  file.setAttribute("form", "upload"); // Without this script, it is sent with the post.
  [file.multiple, file.accept] = [true, `${file.accept},image/heic,image/heif`];
  document.querySelector("button[name=upload]").remove();
  hint.textContent = "Or paste it, or drop it on the text.";
  hint.before(extra);
  file.addEventListener("change", () => {
    add(file.files);
    file.value = ""; // The same file can be chosen again.
  });

  // The picker shows the uploaded images, for the text and for the cover.
  const [picker, list] = [create("dialog", {}, { "aria-label": "Images" }), create("ul", { className: "picker" })];
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
    const shown = isFirst && !found.length ? [create("li", { textContent: "No images." })] : found;
    isFirst ? list.replaceChildren(...shown) : list.append(...shown);
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
  picker.append(list, more, " ", button("Close", () => picker.close()));
  document.body.append(picker);
  const addPicked = (url) => addParagraph(`![${alt.value.replace(/[[\]\\]/g, "\\$&")}](${url})`, editor.selection[1]);
  file.after(button("Choose an uploaded image", pick(addPicked, true)));

  const thumbnail = cover.parentNode.querySelector(".thumbnail") ?? create("img", { className: "thumbnail", alt: "", hidden: true });
  const setCover = (url) => changed(Object.assign(cover, { value: url }));
  cover.addEventListener("input", () => {
    const path = cover.value.split("/images/")[1];
    [thumbnail.hidden, thumbnail.src] = [!path, path ? `${new URL("../images/", all).pathname}${path}` : ""];
  });
  const coverFile = create("input", { type: "file", accept: file.accept, hidden: true });
  coverFile.addEventListener("change", () => {
    const [image] = coverFile.files;
    coverFile.value = "";
    enqueue(() => store(image).then(({ url }) => url && setCover(url)));
  });
  const quiet = [button("Choose the cover", pick(setCover), "quiet"), button("Upload a cover", () => coverFile.click(), "quiet")];
  cover.after(...quiet, coverFile, thumbnail);

  return { add, open: () => file.click() };
};
