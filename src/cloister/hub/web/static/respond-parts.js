// What the parts of the respondent's page share: its words, and small ways to write on it. Texts of a survey that an older version
// of the hub took may hold what turns a line round or hides what stands in it: here they leave for the page, and are made printable.

import { UNPRINTABLE } from "./cloister-survey.js";

export const words = document.getElementById("words")?.dataset ?? {};
export const at = (id) => document.getElementById(id);

/** The text as it may stand on a page: what is not printable, by its number, as everywhere in the hub (printable.py). */
export const shown = (text) => text.replace(UNPRINTABLE, (found) =>
  "\t\n\r".includes(found) ? found : `⟨U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

export const fill = (text, values) =>
  text.replace(/\{(\w+)\}/g, (whole, name) => (values[name] === undefined ? whole : shown(String(values[name]))));

export const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), "textContent" in properties && { dir: "auto" }, properties);
  for (const name of ["textContent", "ariaLabel"]) if (name in properties) made[name] = shown(String(properties[name]));
  made.append(...children.map((each) => (typeof each === "string" ? shown(each) : each)));
  return made;
};

/** Three digits, rounded up: a page never promises more than the integers do. (1e-9: what a double may be off by is no digit.) */
export const short = (number) => {
  if (!Number.isFinite(number)) return "∞";
  const unit = number > 0 ? 10 ** (Math.floor(Math.log10(number)) - 2) : 1;
  return String(Number((Math.ceil((number / unit) * (1 - 1e-9)) * unit).toPrecision(3)));
};

let groups = 0;

/** A list of answers to tick: one of them (radio), or any (checkbox). */
export function checks(type, labels) {
  groups += 1;
  const inputs = labels.map((_, value) => make("input", { type, autocomplete: "off", name: `group-${groups}`, value }));
  const items = inputs.map((input, index) =>
    make("li", {}, make("label", { className: "check" }, input, make("span", { textContent: labels[index] }))));
  const clear = () => inputs.forEach((input) => { input.checked = false; });
  return { element: make("ul", { className: "checks" }, ...items), inputs, clear };
}

/** A field for a number: for a number field of the browser's, "3,5" is 35 where its language writes a point. "1,000" may be either. */
export function numberField({ low, text }) {
  const inputMode = String(low).startsWith("-") ? "text" : "decimal"; // some keyboards of numbers have no minus
  const input = make("input", { type: "text", inputMode, autocomplete: "off", ariaLabel: text });
  const typed = () => input.value.normalize("NFKC").replace("−", "-").trim();
  const number = () => (/^[-+]?\d+([.,]\d+)?$/.test(typed()) && !/,\d{3}$/.test(typed()) ? Number(typed().replace(",", ".")) : NaN);
  return { input, number, clear: () => { input.value = ""; } };
}

/** Say something at its place; with no text, nothing stands there. */
export const tell = (name, text) => Object.assign(at(name), { textContent: text, hidden: !text });

export const show = (section, heading) => {
  section.hidden = false;
  section.scrollIntoView({ block: "start" });
  heading?.focus({ preventScroll: true });
};

/** What stays in this tab until a report has arrived. A browser that keeps nothing asks again when the page is loaded again. */
export function keep(place, value) {
  try {
    sessionStorage.setItem(place, JSON.stringify(value));
  } catch { /* nothing is kept */ }
}

/** What was kept there; null where there is nothing, or nothing that can be read. */
export function kept(place) {
  try {
    return JSON.parse(sessionStorage.getItem(place));
  } catch {
    return null;
  }
}

/** A report has arrived: nothing stays. */
export function forget(...places) {
  try {
    [INVITATION, ...places].forEach((place) => sessionStorage.removeItem(place));
  } catch { /* nothing was kept */ }
}

const INVITATION = `cloister ${location.pathname}`;

/** The invitation behind the # of the page's link; "" where there is none. It stays in this tab: another language, or a link to a part
 * of the page, takes it from the address. Another one that is put there is another person's, and begins anew. */
export function invitation() {
  const said = () => location.hash.match(/^#([0-9a-f]{32})$/)?.[1];
  const found = said() ?? kept(INVITATION) ?? "";
  if (found) keep(INVITATION, found);
  addEventListener("hashchange", () => {
    if ((said() ?? found) === found) return;
    keep(INVITATION, said());
    location.reload();
  });
  return found;
}

/** Send a report. What there is to say where it did not arrive, in the words of this page: what a hub says of an error is English,
 * and whether the hub has the report, no page can know where its answer is missing. */
export async function deliver(address, report) {
  const body = JSON.stringify(report);
  const headers = { "Content-Type": "application/json" };
  try {
    const answer = await fetch(address, { method: "POST", body, headers, credentials: "omit", referrerPolicy: "no-referrer" });
    if (answer.status === 201) return ""; // a page that something on the way put in the hub's place says 200
    const said = { 403: words.used, 404: words.closed, 409: words.closed, 429: words.busy }[answer.status];
    return said ?? (answer.status >= 400 && answer.status < 500 ? words.invalid : words.unreachable);
  } catch {
    return words.unreachable;
  }
}
