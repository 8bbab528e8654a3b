/* A button on every block of code: it copies what one types, without prompts and answers. */
function typed(text) {
  const prompt = /^(>>> ?|\.\.\. ?|\$ )/;
  const lines = text.trimEnd().split("\n");
  const asked = lines.filter((line) => prompt.test(line));
  return (asked.length ? asked : lines).map((line) => line.replace(prompt, "")).join("\n");
}
document.addEventListener("DOMContentLoaded", () => {
  for (const block of navigator.clipboard ? document.querySelectorAll("div.highlight") : []) {
    const button = Object.assign(document.createElement("button"), { className: "copy", textContent: "Copy" });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(typed(block.querySelector("pre").textContent));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
});
