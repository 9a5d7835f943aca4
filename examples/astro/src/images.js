import { getImage, inferRemoteSize } from "astro:assets";

const WIDTH = 800; // pixels

/** Copy an image into the site, at most 800 pixels wide; return its URL. If it is gone, keep the original link. */
export async function imageAddress(src) {
  try {
    const size = await inferRemoteSize(src);
    const width = Math.min(WIDTH, size.width);
    const height = Math.round((size.height * width) / size.width);
    return (await getImage({ src, width, height, format: "webp" })).src;
  } catch {
    return src;
  }
}

/** Copy the images in HTML into the site. */
export async function withImages(html) {
  const image = /(<img\b[^>]*?\bsrc=")(https?:[^"]*)/g;
  const addresses = new Map();
  for (const [, , src] of html.matchAll(image)) addresses.set(src, await imageAddress(src.replaceAll("&#x26;", "&")));
  return html.replace(image, (_, start, src) => start + addresses.get(src));
}
