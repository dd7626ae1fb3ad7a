// The first step of the respondent's page: a level for all questions, or for each, before the questions are seen.
//
// A level is sent in clear. Chosen by somebody who has seen the question, it could tell of the answer; so what stands here is the
// kind of each question and not its text, and once the questions were shown the choice stays, also when the page is loaded again:
// the levels (no answers) are kept in this tab until the report is sent.

import { report as randomised } from "./cloister-local.js";
import { epsilon, fraction, promises, spent } from "./cloister-survey.js";
import { at, fill, forget, keep, kept, make, short, tell, words } from "./respond-parts.js";

/** Offer the levels; `then` is called when they are chosen. `page.levels` has the name of one for each question. */
export function chooseLevels(page, then) {
  const { survey } = page;
  const radios = survey.levels.map((level) => offered(page, level));
  const selects = survey.questions.map((question, index) => offeredFor(page, question, index));
  const choose = (levels) => {
    page.levels = levels;
    survey.levels.forEach(({ name }, index) => { radios[index].checked = Object.values(levels).every((each) => each === name); });
    survey.questions.forEach(({ name }, index) => { selects[index].value = levels[name]; });
    summed(page);
  };
  const all = (name) => Object.fromEntries(survey.questions.map((question) => [question.name, name]));
  survey.levels.forEach(({ name }, index) => radios[index].addEventListener("change", () => choose(all(name))));
  selects.forEach((select, index) => select.addEventListener("change", () => {
    const careful = survey.levels.reduce((least, level) => (fraction(level.epsilon) < fraction(least.epsilon) ? level : least));
    choose({ ...(page.levels ?? all(careful.name)), [survey.questions[index].name]: select.value });
  }));
  at("each").hidden = survey.questions.length < 2 || survey.levels.length < 2;
  at("demo-again").addEventListener("click", () => demonstrate(page));
  const go = () => {
    for (const input of [...radios, ...selects, at("begin")]) input.disabled = true;
    at("kept").hidden = false;
    then();
  };
  at("begin").addEventListener("click", () => {
    keep(place(page), page.levels);
    go();
  });
  const levels = kept(place(page));
  if (!allowed(page, levels)) return;
  choose(levels);
  at("each").open = new Set(Object.values(levels)).size > 1;
  go();
}

/** A level for all questions; one that would come to more than the cap can't be chosen here. */
function offered(page, level) {
  const { survey } = page;
  const told = promises(survey, level.name);
  const worst = Math.max(...Object.values(told.questions).map((each) => each.epsilon));
  const fits = spent(survey, level.name).allowed;
  const input = make("input", { type: "radio", name: "level", value: level.name, disabled: !fits });
  const odds = fill(words.odds, { times: short(Math.exp(worst)), epsilon: short(worst) });
  const total = { epsilon: short(told.epsilon), count: survey.questions.length };
  const help = make("span", { className: "help", textContent: `${odds} ${fill(fits ? words.total : words.tooMuch, total)}` });
  at("levels").append(make("li", {}, make("label", { className: "check" }, input, make("span", {}, level.name, " ", help))));
  return input;
}

/** A level for one question, of which the kind is told. */
function offeredFor({ survey }, question, index) {
  const kind = words[`kind${question.kind.replace(/(^|-)(\w)/g, (_, dash, letter) => letter.toUpperCase())}`];
  const select = make("select", { id: `level-${index}` }, ...survey.levels.map(({ name }) => make("option", { value: name }, name)));
  select.selectedIndex = -1;
  const text = fill(words.nth, { place: index + 1, count: survey.questions.length, kind });
  at("level-each").append(make("div", { className: "field" }, make("label", { htmlFor: select.id, textContent: text }), select));
  return select;
}

/** What the levels come to, exactly, and whether it is allowed. */
function summed(page) {
  const { epsilon: sum, cap, allowed } = spent(page.survey, page.levels);
  const [told, most] = [sum, cap].map(([above, below]) => Number(above) / Number(below));
  page.sum = fill(words.sum, { epsilon: short(told), cap: String(Number(most.toPrecision(6))) });
  at("sum-text").textContent = page.sum;
  Object.assign(at("sum-meter"), { max: most, value: told });
  tell("over", allowed ? "" : words.over);
  at("begin").disabled = !allowed;
  at("sum").hidden = at("demo").hidden = false;
  demonstrate(page);
}

/** Twenty reports of a made-up "yes", by the coins of a yes-or-no question at the level that tells the most of those chosen. */
function demonstrate(page) {
  const names = [...new Set(Object.values(page.levels))];
  const loudest = names.reduce((one, other) => (surer(page, other) > surer(page, one) ? other : one));
  at("demo-level").textContent = fill(words.demo, { level: loudest });
  const chips = Array.from({ length: 20 }, () => {
    const said = randomised(page.demonstration[loudest], 1) === 1;
    return make("li", {}, make("span", { className: said ? "badge main" : "badge", textContent: said ? words.yes : words.no }));
  });
  at("demo-reports").replaceChildren(...chips);
}

const surer = (page, name) => epsilon(page.demonstration[name]);

/** Of one survey, as it stands; and of one invitation, so that whoever comes next on this machine chooses anew. */
const place = ({ survey, ticket, invited }) => `cloister ${survey.survey} ${survey.version} ${invited ? ticket : ""}`;

/** Whether what was kept in this tab are levels that this survey takes. */
function allowed(page, levels) {
  try {
    return Boolean(levels) && typeof levels === "object" && spent(page.survey, levels).allowed;
  } catch {
    return false;
  }
}

/** Keep what is about to leave, until it has left: a page that is loaded again sends these values, and draws none anew. Two draws of
 * the same answers would tell twice as much as the page says. */
export const keepReport = (page) => keep(`${place(page)} report`, page.report);

/** The report of this survey that was made here, or that another tab tells of, and is not known to have arrived; null: none. */
export function keptReport(page, report = kept(`${place(page)} report`)) {
  const { survey, version } = page.survey;
  if (!report || report.survey !== survey || report.version !== version || !/^[0-9a-f]{32}$/.test(report.token)) return null;
  return allowed(page, report.levels) ? report : null;
}

/** The report is sent: nothing stays in the browser. */
export const forgetAll = (page) => forget(place(page), `${place(page)} report`);
