// What a page does where scripts run: nothing here is needed for any work. Each part looks for one data attribute.
"use strict";

const every = (selector, act, root = document) => root.querySelectorAll(selector).forEach(act);
const say = (text) => { const live = document.getElementById("spoken"); if (live) live.textContent = text; };

// data-theme-choice: a button of the theme form changes the page at once, and the form's answer is not waited for.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-theme-choice]");
  if (!button) return;
  event.preventDefault();
  const theme = button.dataset.themeChoice;
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  every("[data-theme-choice]", (other) => other.setAttribute("aria-pressed", String(other.dataset.themeChoice === theme)));
  const form = button.form;
  const body = new URLSearchParams(new FormData(form));
  body.set(button.name, button.value);
  fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => {});
});

// data-copy="id": copies the text of that element. The button is hidden until there is a clipboard to copy to.
const readyToCopy = (root) => every("[data-copy]", (button) => { button.hidden = !navigator.clipboard; }, root);
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  const from = button && document.getElementById(button.dataset.copy);
  if (!from) return;
  try {
    await navigator.clipboard.writeText(from.value ?? from.textContent);
  } catch {
    return;
  }
  const label = button.querySelector("[data-copied]") ?? button;
  const before = label.textContent;
  label.textContent = label.dataset.copied ?? before;
  say(label.textContent);
  setTimeout(() => { label.textContent = before; }, 1600);
});

// data-print: prints the page. The button is hidden until there is a script to press it for.
const readyToPrint = (root) => every("[data-print]", (button) => { button.hidden = false; }, root);
document.addEventListener("click", (event) => { if (event.target.closest("[data-print]")) window.print(); });

// data-confirm="question": asked before a form is sent. The second of two clicks sends nothing. A page that the browser kept has new forms.
let sent = {};
window.addEventListener("pageshow", ({ persisted }) => { sent = {}; if (persisted) every("[name=form_once]", (it) => { it.value += "-"; }); });
document.addEventListener("submit", (event) => {
  const by = event.submitter ?? event.target;
  const asked = by.dataset.confirm ?? event.target.dataset.confirm;
  if ((sent.by === by && event.timeStamp - sent.at < 5000) || (asked && !window.confirm(asked))) event.preventDefault();
  else sent = { by, at: event.timeStamp };
});

// data-insert="text" data-into="id": puts the text where the cursor of that editor stands.
const readyToInsert = (root) => every("[data-insert]", (button) => { button.disabled = false; }, root);
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  const editor = button && document.getElementById(button.dataset.into);
  if (!editor) return;
  editor.setRangeText(button.dataset.insert, editor.selectionStart, editor.selectionEnd, "end");
  editor.focus();
  editor.dispatchEvent(new Event("input", { bubbles: true }));
});

// What a fragment of the hub brings is put in place of what stands in `region`. It is our own page, made by the same templates.
const fill = (region, html) => {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  region.replaceChildren(...parsed.body.childNodes);
  ready(region);
};

// form[data-live="address" data-live-into="id"]: what is typed is sent after a pause, and the region shows the answer.
const live = (form) => {
  const region = document.getElementById(form.dataset.liveInto);
  if (!region || form.dataset.liveReady) return;
  form.dataset.liveReady = "yes";
  let timer = 0;
  let running = null;
  const send = async () => {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    region.dataset.liveBusy = "";
    try {
      const answer = await fetch(form.dataset.live, {
        method: "POST",
        body: new URLSearchParams([...new FormData(form)].filter(([, value]) => typeof value === "string")),
        headers: { Accept: "text/html", "X-Fragment": "1" },
        redirect: "error",
        signal: mine.signal,
      });
      const text = await answer.text();
      if (running === mine && (answer.headers.get("content-type") ?? "").startsWith("text/html")) fill(region, text);
    } catch { /* out of reach: what was there stays, and the button of the form works as ever */ } finally {
      if (running === mine) delete region.dataset.liveBusy;
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(send, Number(form.dataset.livePause ?? 400));
  });
};

// [data-poll="address" data-poll-every="2000"]: shows progress until the answer says `X-Done: 1`, or goes where `X-Go` says.
const poll = (region) => {
  if (region.dataset.pollReady) return;
  region.dataset.pollReady = "yes";
  let pause = Number(region.dataset.pollEvery ?? 2000);
  const look = async () => {
    if (!region.isConnected) return;
    try {
      const answer = await fetch(region.dataset.poll, { headers: { Accept: "text/html", "X-Fragment": "1" }, redirect: "error" });
      const go = answer.headers.get("X-Go");
      if (go && go.startsWith("/") && !go.startsWith("//")) return void location.assign(go);
      if (answer.ok) fill(region, await answer.text());
      if (answer.headers.get("X-Done") === "1" || (answer.status >= 400 && answer.status < 500)) return;
    } catch {
      pause = Math.min(pause * 2, 30000);
    }
    setTimeout(look, document.hidden ? Math.max(pause, 10000) : pause);
  };
  // [data-events="address"]: what is polled is also fetched as soon as the server says that there is more.
  if (region.dataset.events) {
    let asked = 0, newest = 0;  // an answer that is overtaken by a newer one is not shown
    const once = async () => {
      const mine = ++asked;
      const answer = await fetch(region.dataset.poll, { headers: { Accept: "text/html", "X-Fragment": "1" }, redirect: "error" });
      const text = await answer.text();
      if (answer.ok && mine > newest) { newest = mine; fill(region, text); }
    };
    new EventSource(region.dataset.events).addEventListener("step", () => once().catch(() => {}));
  }
  setTimeout(look, pause);
};

// A sheet closes with Escape and with a click beside it; without scripts its summary closes it.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  every("details.menu[open]", (menu) => { menu.open = false; if (menu.contains(document.activeElement)) menu.querySelector("summary").focus(); });
});
document.addEventListener("click", (event) => {
  every("details.menu[open]", (menu) => { if (!menu.contains(event.target)) menu.open = false; });
});

// What a word of the glossary means is hidden by Escape, until another one is pointed at.
document.addEventListener("keydown", (event) => { if (event.key === "Escape") document.body.dataset.hush = ""; });
every("a.term", (term) => ["pointerenter", "focus"].forEach((kind) => term.addEventListener(kind, () => { delete document.body.dataset.hush; })));

// Ctrl+Enter in an editor asks, as in every other editor of questions.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea[data-submit]")) {
    event.target.form?.requestSubmit(event.target.form.querySelector("[data-first]") ?? undefined);
  }
});

const ready = (root) => {
  readyToCopy(root);
  readyToPrint(root);
  readyToInsert(root);
  every("form[data-live]", live, root);
  every("[data-poll]", poll, root);
};
ready(document);
const wrong = document.querySelector("[data-focus-first]");
if (wrong) wrong.focus();
