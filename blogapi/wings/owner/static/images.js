// Images in the form of a post: upload them in the background or choose uploaded ones, for the text or as the cover.
import { isWide, showBeside } from "./form.js";
import { button, changed, create, formOf, load } from "./owner.js";

const IN_TEXT = /!\[((?:\\.|[^[\]\\\n])*)\]\(\S{0,200}?\/images\/(\w+\.\w+)\)/g; // uploaded images

export const openImages = (editor, { post, upload, say, alarm }) => {
  const [file, coverFile, cover] = [...document.querySelectorAll("[type=file]"), post.elements.cover_image];
  const all = upload.action.replace(/\/upload$/, "");
  const addressOf = (name) => (name ? new URL(`../images/${name}`, all).pathname : ""); // on this page
  let uploads = Promise.resolve();
  const enqueue = (work) => editor.adds((uploads = uploads.then(work).catch(() => {})));

  // Shrink photographs before the upload, unless the checkbox is cleared.
  const smaller = async (image) => {
    const isJpeg = image.type === "image/jpeg";
    const picture = (isJpeg || /\.hei[cf]$/i.test(image.name)) && (await createImageBitmap(image).catch(() => null));
    const scale = Math.min(1, 2560 / Math.max(picture?.width, picture?.height));
    if (!picture || (isJpeg && (scale === 1 || !document.getElementById("shrinks").checked))) {
      return image;
    }
    const canvas = new OffscreenCanvas(Math.round(picture.width * scale), Math.round(picture.height * scale));
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 }).catch(() => null);
    return blob ? new File([blob], image.name.replace(/\.\w+$/, ".jpg")) : image;
  };
  const store = async (image, again) => {
    say(`Uploading ${image.name}…`);
    alarm("image");
    const page = await load(upload.action, { method: "POST", body: formOf({ form_token: upload.elements.form_token.value, file: await smaller(image) }) });
    const [url, markdown] = ["address", "markdown"].map((id) => page.getElementById(id)?.textContent);
    const request = markdown?.startsWith("![]") ? "Describe the image in the [ ]." : "";
    say(url ? (innerWidth > 480 ? `${image.name} was added. ${request}` : request || "The image was added.") : "", image);
    url || alarm("image", `${image.name} was not added. ${page.querySelector("main p")?.textContent.replace("File: must", "It must").replace("File:", "The reason:") ?? "There is no connection."}`, page.body.hasChildNodes() ? "" : button("Try again", again, "quiet"), button("Dismiss", () => alarm("image"), "quiet"));
    return { url, markdown };
  };

  const goTo = (at, text = "") => editor.select(at, at + text.length, isWide.matches || showBeside(""));
  // An image becomes a paragraph at the place where the caret was when it was chosen, dropped or pasted.
  const addAt = (place, image) => enqueue(async () => {
    const { markdown } = await store(image, () => addAt(place, image));
    await editor.settled();
    const [isHere, at] = [editor.isAt(place), markdown && editor.addBlock(markdown, place)];
    isHere && markdown?.startsWith("![]") && goTo(at + 2); // to its description
  });
  const add = (files) => {
    document.activeElement === editor.area || goTo(editor.selection[1]);
    [...files].forEach((image) => addAt(editor.place(), image));
  };
  file.setAttribute("form", "upload"); // Without this script, the file is sent with the post.
  [file.multiple, file.className, file.accept] = [true, "bare", `${file.accept},image/heic,image/heif`];
  const onFiles = (input, use) => input.addEventListener("change", () => [use([...input.files]), (input.value = "")]); // so that the writer can choose the same file again
  onFiles(file, add);

  // Thumbnails of the images in the text. A click selects the image in the text.
  const choice = (src, name, onclick) => button([create("img", { src, alt: "", loading: "lazy" }), name], onclick);
  const strip = document.querySelector(".strip");
  editor.changed(() => {
    const find = () => [...editor.doc.matchAll(IN_TEXT)];
    strip.dataset.shown === String(find()) || strip.replaceChildren(...find().map(([, alt, name], at) => choice(addressOf(name), alt || "Image without a description", () => goTo(find()[at].index, find()[at][0]))));
    strip.dataset.shown = find();
  });

  // The picker shows the uploaded images, for the text and for the cover.
  const picker = document.getElementById("picker");
  const [, search, alt, list, more] = picker.querySelectorAll("input, ul, button");
  let [choose, wanted, next] = [null, "", ""];
  const show = async (address) => {
    const page = await load((wanted = address));
    if (wanted === address) { // Otherwise, a later search has begun.
      const found = [...page.querySelectorAll("[data-url]")].map((card) => create("li", {}, choice(card.querySelector("img").src, card.querySelector("h2").textContent, () => choose(card.dataset.url, picker.close()))));
      address === next ? found[0]?.firstChild.focus(list.append(...found)) : list.replaceChildren(...found);
      next = wanted = page.querySelector(".pages a[rel=next]")?.href ?? "";
      more.hidden = !next;
    }
  };
  const pick = (action, hasText) => () => {
    [choose, search.value, alt.value, alt.parentNode.hidden] = [action, "", "", !hasText];
    picker.showModal();
    show(all);
  };
  search.addEventListener("input", () => show(`${all}?q=${encodeURIComponent(search.value)}`));
  more.addEventListener("click", () => wanted === next && show(next));
  file.after(button("Uploaded images", pick((url) => editor.addBlock(`![${alt.value.replace(/[[\]\\]/g, "\\$&")}](${url})`, goTo(editor.selection[1])), true)));

  const thumbnail = cover.parentNode.querySelector(".thumbnail") ?? create("img", { className: "thumbnail", alt: "", hidden: true });
  const setCover = (url) => changed(Object.assign(cover, { value: url }));
  cover.addEventListener("input", () => (thumbnail.hidden = !(thumbnail.src = addressOf(cover.value.split("/images/")[1]))));
  const addCover = ([image]) => enqueue(() => store(image, () => addCover([image])).then(({ url }) => url && setCover(url, say("The cover was added."))));
  onFiles(coverFile, addCover);
  cover.after(button("Choose the cover", pick(setCover), "quiet"), button("Upload a cover", () => coverFile.click(), "quiet"), thumbnail);

  return { add, open: () => file.click() };
};
