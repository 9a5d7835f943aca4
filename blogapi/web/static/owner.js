// Copying is all that needs a script: its buttons are hidden without one.
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
