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
  const shrinks = document.getElementById("shrinks");
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
    const page = await load(upload.action, { method: "POST", body: formOf({ form_token: upload.elements.form_token.value, file: await smaller(image) }) });
    const [url, markdown] = ["address", "markdown"].map((id) => page.getElementById(id)?.textContent);
    say(url ? `${image.name} was added.` : "", image);
    url || alarm("image", `${image.name} was not added. ${page.querySelector("main p")?.textContent ?? "There is no connection."}`);
    return { url, markdown };
  };

  // An image becomes a paragraph at the place where the caret was when it was chosen, dropped or pasted.
  const add = (files) => {
    for (const image of files) {
      const place = editor.place();
      enqueue(async () => {
        const { markdown } = await store(image);
        await editor.settled();
        markdown && editor.addParagraph(markdown, place);
      });
    }
  };
  file.setAttribute("form", "upload"); // Without this script, the file is sent with the post.
  [file.multiple, file.className, file.accept] = [true, "bare", `${file.accept},image/heic,image/heif`];
  // Emptying the field lets the writer choose the same file again.
  const onFiles = (input, use) => input.addEventListener("change", () => [use([...input.files]), (input.value = "")]);
  onFiles(file, add);

  // Thumbnails of the images in the text. A click selects the image in the text.
  const choice = (src, name, onclick) => {
    const press = Object.assign(button("", onclick), { title: name });
    press.append(create("img", { src, alt: "", loading: "lazy" }), name);
    return press;
  };
  const strip = document.querySelector(".strip");
  const find = () => [...editor.doc.matchAll(IN_TEXT)];
  const goTo = (number) => {
    const { index, 0: markdown } = find()[number];
    isWide.matches || showBeside("");
    editor.select(index, index + markdown.length);
  };
  const draw = () => {
    const images = find();
    const show = ([, alt, name], number) => choice(addressOf(name), alt || "Image without a description", () => goTo(number));
    strip.dataset.shown === String(images) || strip.replaceChildren(...images.map(show));
    strip.dataset.shown = images;
  };
  editor.changed(draw);
  draw();

  // The picker shows the uploaded images, for the text and for the cover.
  const picker = document.getElementById("picker");
  const [close, search, alt, list, more] = picker.querySelectorAll("input, ul, button");
  let [choose, next] = [null, ""];
  const show = async (address) => {
    const isFirst = address !== next;
    next = address;
    const page = await load(address);
    if (next !== address) {
      return; // A later search has begun, so drop this result.
    }
    const found = [...page.querySelectorAll("[data-url]")].map((card) => {
      const name = card.querySelector("h2").textContent;
      return create("li").appendChild(choice(card.querySelector("img").src, name, () => choose(card.dataset.url, picker.close()))).parentNode;
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
  more.addEventListener("click", () => show(next));
  close.addEventListener("click", () => picker.close());
  file.after(button("Choose an uploaded image", pick((url) => editor.addParagraph(`![${alt.value.replace(/[[\]\\]/g, "\\$&")}](${url})`), true)));

  const thumbnail = cover.parentNode.querySelector(".thumbnail") ?? create("img", { className: "thumbnail", alt: "", hidden: true });
  const setCover = (url) => changed(Object.assign(cover, { value: url }));
  cover.addEventListener("input", () => (thumbnail.hidden = !(thumbnail.src = addressOf(cover.value.split("/images/")[1]))));
  onFiles(coverFile, ([image]) => enqueue(() => store(image).then(({ url }) => url && setCover(url))));
  cover.after(button("Choose the cover", pick(setCover), "quiet"), button("Upload a cover", () => coverFile.click(), "quiet"), thumbnail);

  return { add, open: () => file.click() };
};
