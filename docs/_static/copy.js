// A button that copies an example. One that goes on from the examples above it is copied with them: what is pasted runs alone.
(() => {
  "use strict";
  const CONTINUED = "# continued from above\n";

  const code = (box) => {
    const text = box.querySelector("pre").textContent;
    if (!text.startsWith(">>> ")) return text;
    const typed = text.split("\n").filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
    return typed.map((line) => line.slice(4) + "\n").join("");
  };

  const copied = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea"); // pages from a folder have no clipboard
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };

  const boxes = [...document.querySelectorAll("div.highlight-python")];
  const texts = boxes.map(code);
  boxes.forEach((box, place) => {
    const whole = texts[place].startsWith(CONTINUED);
    const text = (whole ? texts.slice(0, place + 1) : [texts[place]]).map((each) => each.replace(CONTINUED, "")).join("\n");
    const name = whole ? "Copy with the examples above" : "Copy";
    const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: name });
    button.addEventListener("click", async () => {
      await copied(text);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = name), 2000);
    });
    box.append(button);
  });
})();
