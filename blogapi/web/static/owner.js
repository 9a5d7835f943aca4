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
  for (const file of files) {
    said.textContent = `Uploading ${file.name} …`;
    const form = new FormData();
    form.set("form_token", upload.elements.form_token.value);
    form.set("file", file);
    const answer = await fetch(upload.action, { method: "POST", body: form }).catch(() => null);
    const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
    const markdown = page.getElementById("markdown")?.textContent;
    if (!markdown) {
      said.textContent = page.querySelector("main p")?.textContent ?? "The image was not uploaded: there is no connection.";
      return;
    }
    if (document.activeElement !== content || !document.execCommand("insertText", false, markdown)) {
      content.setRangeText(markdown, content.selectionStart, content.selectionEnd, "end");
    }
    said.textContent = `${file.name} was added.`;
  }
}

if (content && upload) {
  content.setSelectionRange(content.value.length, content.value.length);
  document.getElementById("file-hint").textContent = "Or paste it, or drop it on the content.";
  upload.addEventListener("submit", (event) => {
    event.preventDefault();
    addImages(upload.elements.file.files);
  });
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
