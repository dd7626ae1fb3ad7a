// The respondent's page: levels (respond-levels.js), the questions, what leaves, sending. True answers live in this page's memory and
// nowhere else: no form holds them, none is stored, and the only request that is made after the survey was fetched sends what
// "report" holds. The report, which is randomised, stays in the tab until it has arrived, so that answers are drawn once.

import { report as randomised } from "./cloister-local.js";
import { epsilon, fraction, labels, newToken, placeOf, respond, wordOf } from "./cloister-survey.js";
import { chooseLevels, forgetAll, keepReport, keptReport } from "./respond-levels.js";
import { at, checks, deliver, fill, invitation, make, numberField, short, show, shown, tell, words } from "./respond-parts.js";

const root = at("survey");

if (root) start();

async function start() {
  const stop = (textContent) => root.replaceChildren(make("p", { className: "error", role: "alert", textContent }));
  root.hidden = false;
  const invited = root.dataset.invited !== undefined;
  const ticket = invited ? invitation() : newToken(); // an open survey takes none from its link: others may have it too
  if (!ticket) return stop(words.uninvited);
  try {
    const answer = await fetch(root.dataset.survey, { credentials: "omit" }).catch(() => null);
    if (!answer?.ok) return stop(words.away);
    const { survey, demonstration } = await answer.json();
    const page = { survey, demonstration, ticket, invited, levels: null, report: null };
    const waiting = keptReport(page);
    if (waiting) leave(Object.assign(page, { report: waiting, levels: waiting.levels }));
    else chooseLevels(page, () => ask(page));
    if (invited && "BroadcastChannel" in window) join(page);
    at("randomise").addEventListener("click", () => randomise(page));
    at("send").addEventListener("click", () => send(page));
    addEventListener("pagehide", () => wipe(page));
  } catch {
    stop(words.unsound);
  }
}

/** Tabs with one invitation send one draw: the first is told to all of them, and again to those that come later. */
function join(page) {
  page.tabs = new BroadcastChannel(`cloister ${page.ticket}`);
  page.tabs.addEventListener("message", ({ data }) => {
    if (page.report) return data === null && page.tabs.postMessage(page.report);
    const report = data && keptReport(page, data);
    if (!report) return;
    Object.assign(page, { report, levels: report.levels });
    keepReport(page); // the other tab may close
    wipe(page);
    at("step-questions").hidden = true;
    tell("failed", words.drawn);
    leave(page);
  });
  page.tabs.postMessage(page.report);
}

/** No true answer stays behind: not in a page that is done, and not in one that the browser keeps for its "back" button. */
function wipe(page) {
  page.inputs?.forEach((each) => each.clear());
  if (!page.report) return;
  at("questions").replaceChildren();
  page.inputs = undefined;
}

// 2. questions

function ask(page) {
  const names = [...new Set(Object.values(page.levels))];
  page.mixed = names.length > 1;
  at("chosen-level").textContent = `${page.mixed ? words.levels : fill(words.level, { level: names[0] })} ${page.sum}`;
  page.inputs = page.survey.questions.map((question) => asked(page, question));
  at("questions").replaceChildren(...page.inputs.map((each) => each.box));
  show(at("step-questions"), at("h-questions"));
}

function asked(page, question) {
  const parts = KINDS[question.kind](question);
  const box = make("fieldset", { className: "field card" }, make("legend", { textContent: question.text }));
  if (parts.help) box.append(make("span", { className: "help", textContent: parts.help }));
  box.append(...parts.elements);
  let none = null;
  if (question.no_answer) {
    none = make("input", { type: "checkbox", autocomplete: "off" });
    const help = make("span", { className: "help", textContent: words.noneHelp });
    box.append(make("label", { className: "check" }, none, make("span", {}, words.none, " ", help)));
    none.addEventListener("change", () => { if (none.checked) parts.clear(); });
    box.addEventListener("input", (event) => { if (event.target !== none) none.checked = false; });
  }
  const client = clientOf(page, question);
  const level = page.mixed ? `${fill(words.at, { level: page.levels[question.name] })} ` : "";
  box.append(make("p", { className: "small soft promise", textContent: level + promise(question, client) }));
  const read = () => (none?.checked ? null : parts.read());
  if (seen(client)) box.append(would(question, client, read));
  const clear = () => {
    parts.clear();
    if (none) none.checked = false;
    box.querySelector(".badges")?.replaceChildren(); // a dozen reports of one answer all but say it
  };
  return { question, box, read, clear };
}

function promise(question, client) {
  const times = short(Math.exp(epsilon(client)));
  const answer = question.kind === "yes-no" ? words.yes : question.options?.[0] ?? question.steps?.at(-1);
  return fill(answer ? words.promise : words.promiseAny, { answer, times });
}

const clientOf = (page, question) => page.survey.channels[question.name][page.levels[question.name]];

/** Whether a report is an answer itself, so that it can be shown as a word. */
const seen = (client) => ["response", "direct"].includes(client.protocol);

function would(question, client, read) {
  const chips = make("ul", { className: "badges" });
  const button = make("button", { type: "button", className: "plain small", textContent: words.would });
  button.addEventListener("click", () => {
    const answer = read();
    if (answer === undefined) return;
    const place = placeOf(question, answer);
    const reports = Array.from({ length: 12 }, () => labelled(question, randomised(client, place)));
    chips.replaceChildren(...reports.map((text) => make("li", {}, make("span", { className: "badge", textContent: text }))));
  });
  return make("div", {}, button, chips);
}

function labelled(question, place) {
  const label = labels(question)[place];
  if (label === "no answer") return words.noAnswer;
  if (question.kind === "yes-no") return label === "yes" ? words.yes : words.no;
  if (question.kind !== "place") return label;
  return fill(words.cell, { row: Math.floor(place / question.columns) + 1, column: (place % question.columns) + 1 });
}

/** For each kind: what stands on the page, what is read of it (undefined: nothing yet, or nothing that is allowed), and how to clear it. */
const KINDS = {
  "yes-no": () => oneOf(["no", "yes"], [words.no, words.yes]),
  choice: (question) => oneOf(question.options),
  scale: (question) => oneOf(question.steps),
  several(question) {
    const { element, inputs, clear } = checks("checkbox", question.options);
    const ticked = () => question.options.filter((_, index) => inputs[index].checked);
    const read = () => (ticked().length <= question.most ? ticked() : undefined); // nothing ticked is an answer
    return { help: fill(words.several, question), elements: [element], clear, read };
  },
  number(question) {
    const { input, number, clear } = numberField(question);
    const read = () => (number() >= fraction(question.low) && number() <= fraction(question.high) ? number() : undefined);
    return { help: fill(words.between, question), elements: [input], clear, read };
  },
  place(question) {
    const { south, north, west, east, rows, columns } = question;
    const latitudes = edges(south, north, rows);
    const longitudes = edges(west, east, columns);
    const cells = [];
    const grid = make("table", { className: "map" });
    for (let row = rows - 1; row >= 0; row -= 1) {
      const line = make("tr", {}, make("th", { scope: "row", textContent: latitudes[row] }));
      for (let column = 0; column < columns; column += 1) {
        const input = make("input", { type: "radio", autocomplete: "off", name: `place-${question.name}`, value: `${row},${column}` });
        const square = { cell: fill(words.cell, { row: row + 1, column: column + 1 }), latitude: latitudes[row], longitude: longitudes[column] };
        input.ariaLabel = fill(words.square, square);
        cells.push(input);
        line.append(make("td", {}, make("label", { title: input.ariaLabel }, input)));
      }
      grid.append(line);
    }
    grid.append(make("tr", {}, make("td"), ...longitudes.map((textContent) => make("th", { scope: "col", textContent }))));
    return {
      help: fill(words.map, question),
      elements: [make("div", { className: "pan", tabIndex: 0, role: "region", ariaLabel: question.text }, grid)],
      clear: () => cells.forEach((input) => { input.checked = false; }),
      read: () => cells.find((input) => input.checked)?.value,
    };
  },
  word(question) {
    const input = make("input", { type: "text", maxLength: question.length, autocomplete: "off", spellcheck: false, ariaLabel: question.text });
    const clear = () => { input.value = ""; };
    const read = () => (wordOf(question, input.value) ? input.value : undefined);
    return { help: fill(words.word, question), elements: [input], clear, read };
  },
};

/** From where to where each of so many equal parts goes, in degrees. */
function edges(low, high, parts) {
  const edge = (place) => `${Number((low + ((high - low) * place) / parts).toFixed(4))}°`;
  return Array.from({ length: parts }, (_, place) => `${edge(place)} – ${edge(place + 1)}`);
}

function oneOf(answers, labels = answers) {
  const { element, inputs, clear } = checks("radio", labels);
  return { elements: [element], clear, read: () => answers[inputs.findIndex((input) => input.checked)] };
}

// 3. what leaves

function randomise(page) {
  const answers = {};
  for (const each of page.inputs) {
    const answer = each.read();
    if (answer === undefined) return tell("missing", fill(words.missing, { question: each.question.text }));
    answers[each.question.name] = answer;
  }
  tell("missing", "");
  page.report = respond(page.survey, answers, page.levels, { token: page.ticket });
  at("randomise").disabled = true;
  at("questions").querySelectorAll("input, button").forEach((input) => { input.disabled = true; });
  keepReport(page);
  page.tabs?.postMessage(page.report);
  leave(page);
}

/** Show what leaves: just made, or made in this tab before and not known to have arrived. */
function leave(page) {
  at("step-level").hidden = page.inputs === undefined;
  at("leaving").textContent = shown(JSON.stringify(page.report, null, 2));
  const lines = [words.chosenLevels, ...page.survey.questions.map((question) => told(page, question))];
  at("readable").replaceChildren(...lines.map((textContent) => make("li", { textContent })));
  show(at("step-send"), at("h-send"));
}

function told(page, question) {
  const said = page.report.values[question.name];
  if (!seen(clientOf(page, question))) return fill(words.code, { question: question.text });
  return fill(words.arrives, { question: question.text, answer: labelled(question, said) });
}

async function send(page) {
  at("send").disabled = true;
  const why = await deliver(root.dataset.send, page.report);
  tell("failed", why);
  at("send").disabled = !why;
  if (why) return;
  at("step-level").hidden = at("step-questions").hidden = at("step-send").hidden = true;
  forgetAll(page);
  wipe(page);
  at("leaving").textContent = "";
  at("readable").replaceChildren();
  history.replaceState(null, "", location.pathname);
  show(at("step-thanks"), at("thanks"));
}
