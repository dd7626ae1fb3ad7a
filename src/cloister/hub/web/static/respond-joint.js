// The respondent's page of a joint survey: the questions, shares, sending. True answers live in this page's memory and nowhere else;
// the only request that is made after the survey was fetched sends one share of each, and the other one under the helper's seal.
// That report stays in the tab until it has arrived: a page that is loaded again sends it, and no second one that would count, too.

import { digestOf, fingerprintOf, reportOf, unhex } from "./cloister-prio3.js";
import { at, checks, deliver, fill, forget, invitation, keep, kept, make, numberField, show, shown, tell, words } from "./respond-parts.js";

const root = at("joint-survey");

if (root) start();

async function start() {
  const stop = (textContent) => root.replaceChildren(make("p", { className: "error", role: "alert", textContent }));
  root.hidden = false;
  if (!crypto.subtle) return stop(words.insecure); // browsers have it over https, and on this machine
  const ticket = root.dataset.invited === undefined ? null : invitation();
  if (ticket === "") return stop(words.uninvited);
  try {
    const answer = await fetch(root.dataset.survey, { credentials: "omit" }).catch(() => null);
    if (!answer?.ok) return stop(words.away);
    const { survey, digest, helper } = await answer.json();
    if ((await digestOf(survey)) !== digest) throw new Error("another survey");
    const page = { survey, key: unhex(helper), ticket, inputs: [] };
    page.place = `cloister joint ${digest} ${ticket ?? ""} report`; // whoever comes next with an invitation answers anew
    const waiting = kept(page.place); // made in this tab, and not known to have arrived
    page.report = /^[0-9a-f]{32}$/.test(waiting?.nonce) ? waiting : null;
    at("fingerprint").textContent = await fingerprintOf(page.key);
    if (page.report) at("questions").replaceChildren(make("p", { textContent: words.waiting }));
    else at("questions").replaceChildren(...(page.inputs = survey.questions.map(asked)).map((each) => each.box));
    at("send").addEventListener("click", () => send(page));
    addEventListener("pagehide", () => page.inputs.forEach((each) => each.clear()));
  } catch {
    stop(words.unsound);
  }
}

function asked(question) {
  const parts = question.kind === "number" ? numbered(question) : chosen(question);
  const box = make("fieldset", { className: "field card" }, make("legend", { textContent: question.text }));
  if (parts.help) box.append(make("span", { className: "help", textContent: parts.help }));
  box.append(parts.element);
  return { question, box, ...parts };
}

function numbered(question) {
  const { low, high } = question;
  const { input, number, clear } = numberField(question);
  const read = () => (Number.isInteger(number()) && number() >= low && number() <= high ? number() - low : undefined);
  return { element: input, help: fill(words.between, question), read, clear };
}

function chosen(question) {
  const labels = question.kind === "yes-no" ? [words.no, words.yes] : question.options;
  const { element, inputs, clear } = checks("radio", labels);
  return { element, clear, read: () => [...labels.keys()].find((index) => inputs[index].checked) };
}

async function send(page) {
  const values = page.inputs.map((each) => each.read());
  const missing = page.inputs.find((_, index) => values[index] === undefined);
  tell("failed", "");
  tell("missing", missing && !page.report ? fill(words.missing, { question: missing.question.text }) : "");
  if (missing && !page.report) return;
  at("send").disabled = true;
  // made once: sent again, the same report counts once
  page.report ??= await reportOf(page.survey, values, page.key).catch(() => null);
  if (!page.report) return tell("failed", words.unsound);
  if (page.ticket) page.report.ticket = page.ticket;
  keep(page.place, page.report);
  at("questions").querySelectorAll("input").forEach((input) => { input.disabled = true; });
  const why = await deliver(root.dataset.send, page.report);
  if (!why) return thanked(page);
  tell("failed", why);
  at("send").disabled = false;
}

function thanked(page) {
  forget(page.place);
  page.inputs.forEach((each) => each.clear());
  at("questions").replaceChildren();
  at("step-questions").hidden = true;
  at("leaving").textContent = shown(JSON.stringify(page.report, null, 2));
  history.replaceState(null, "", location.pathname);
  show(at("step-thanks"), at("thanks"));
}
