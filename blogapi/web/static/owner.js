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
