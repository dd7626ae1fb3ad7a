/**
 * Surveys in a browser: one person's report, and what is promised, worked out from the survey's integers alone.
 *
 *     respond      respond(survey, answers, levels): a whole report, as Python's cloister.local.survey.respond makes it
 *     spent        spent(survey, levels): what the levels come to in all, exactly, and whether the survey's cap allows it
 *     promises     promises(survey, levels): how much surer a report can make anyone of an answer, for each question
 *     odds         of one client, as an exact fraction; epsilon(client) and oddsNumber(client) for display
 *
 * `survey` is what Python's Survey.to_json says; `levels` the name of a level for all questions, or {question's name: level's name}.
 * Nothing is sent anywhere: the page sends what `respond` returns.
 */

import { WORD, check, report, systemWords } from "./cloister-local.js";

const times = ([a, b], [c, d]) => [a * c, b * d];
const more = (one, other) => (one[0] * other[1] >= other[0] * one[1] ? one : other);
const power = ([a, b], n) => [a ** BigInt(n), b ** BigInt(n)];

const ODDS = {
  response(client) {
    const heads = BigInt(client.heads);
    return more([heads, WORD - heads], [WORD - heads, heads]);
  },
  direct(client) {
    const heads = BigInt(client.heads);
    const one = [heads * BigInt(client.size - 1), WORD - heads];
    return more(one, [one[1], one[0]]);
  },
  unary(client) {
    return times(...lifts(client));
  },
  hashing(client) {
    return ODDS.direct({ size: client.field, heads: client.heads });
  },
  subset(client) {
    const [inside, picks] = [BigInt(client.inside), BigInt(client.picks)];
    const one = [inside * (BigInt(client.size) - picks), (WORD - inside) * picks];
    return more(one, [one[1], one[0]]);
  },
  hadamard(client) {
    const [heads, tied] = [BigInt(client.heads), BigInt(client.order / 2)];
    const columns = BigInt(Math.ceil(client.size / (client.order - 1)) * client.order);
    const one = [heads * (columns - tied), (WORD - heads) * tied];
    return more(one, [one[1], one[0]]);
  },
  window(client) {
    return windowOdds(client);
  },
  sign(client) {
    return ODDS.response(client);
  },
  hybrid(client) {
    const [choice, sign] = [BigInt(client.choice), BigInt(client.sign)];
    let most = [1n, 1n];
    if (choice < WORD) most = more(most, more([sign, WORD - sign], [WORD - sign, sign]));
    if (choice > 0n) most = more(most, windowOdds(client));
    return most;
  },
  number(client) {
    return times(odds(client.value), odds(client.answered));
  },
  heavy(client) {
    return odds(client.hashing);
  },
  /** For every u the odds are up^u·down^(spread − u), whose logarithm is a straight line in u: largest at an end. */
  ticks(client) {
    const [up, down] = lifts(client);
    const spread = Math.min(client.size, 2 * client.most);
    const ends = [Math.max(0, spread - client.most), Math.min(client.most, spread)];
    return more(...ends.map((u) => times(power(up, u), power(down, spread - u))));
  },
};

function windowOdds(client) {
  const [heads, width] = [BigInt(client.heads), BigInt(client.width)];
  const one = [heads * (BigInt(client.outputs) - width), (WORD - heads) * width];
  return more(one, [one[1], one[0]]);
}

/** By how much one bit of a report tells a true place from a false one at most, and a false one from a true one: 1 or above. */
function lifts(client) {
  const [stay, rise] = [BigInt(client.stay), BigInt(client.rise)];
  return [more([stay, rise], [WORD - stay, WORD - rise]), more([WORD - rise, WORD - stay], [rise, stay])];
}

/** How much surer a report can make anyone of any answer, at most: an exact fraction [BigInt, BigInt], from the integers alone. */
export function odds(client) {
  check(client);
  return ODDS[client.protocol](client);
}

/** The same as a number, for display; Infinity where a report can rule an answer out. */
export function oddsNumber(client) {
  return Math.exp(epsilon(client));
}

/** ε of a client's integers, for display: ln of its odds, good to twelve digits. */
export function epsilon(client) {
  const [numerator, denominator] = odds(client);
  return denominator === 0n ? Infinity : logarithm(numerator) - logarithm(denominator);
}

function logarithm(integer) {
  const digits = integer.toString(16);
  const lead = parseInt(digits.slice(0, 13), 16);
  return Math.log(lead) + Math.max(0, digits.length - 13) * 4 * Math.LN2;
}

const NO_ANSWER = "no answer";

/** The answers to a question with one answer, in the order of their places. */
export function labels(question) {
  const answers = {
    "yes-no": () => ["no", "yes"],
    choice: () => question.options,
    several: () => question.options,
    scale: () => question.steps,
    place: () => cells(question),
  }[question.kind]();
  return question.no_answer ? [...answers, NO_ANSWER] : answers;
}

function cells(question) {
  const names = [];
  for (let row = 0; row < question.rows; row += 1)
    for (let column = 0; column < question.columns; column += 1) names.push(`${row},${column}`);
  return names;
}

/**
 * Where an answer stands (question.place in Python): null is no answer; else a label, a list of labels (several), a number
 * (number), a label or [latitude, longitude] (place), a text (word). What is not among the answers is refused.
 */
export function placeOf(question, answer) {
  if (answer === null || answer === undefined) {
    if (!question.no_answer) unanswered(question);
    if (question.kind === "number") return null;
    if (question.kind === "word") return "";
    const last = labels(question).length - 1;
    return question.kind === "several" ? [last] : last;
  }
  if (question.kind === "number") return numberOf(question, answer);
  if (question.kind === "word") return wordOf(question, answer) || (question.no_answer ? "" : unanswered(question));
  const all = labels(question).filter((label) => label !== NO_ANSWER);
  if (question.kind === "several") {
    const places = [...new Set(Array.isArray(answer) ? answer : noSuch(question))].map((label) => found(question, all, label));
    return places.length > question.most ? noSuch(question) : places.sort((one, other) => one - other);
  }
  if (question.kind === "place" && Array.isArray(answer)) return cellAt(question, answer);
  return found(question, all, typeof answer === "boolean" ? (answer ? "yes" : "no") : answer);
}

function found(question, all, label) {
  const place = all.indexOf(label);
  return place < 0 ? noSuch(question) : place;
}

/** What no text holds that people read: the same list as in Python (printable.py). */
export const UNPRINTABLE = new RegExp(
  "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ud800-\\uf8ff\\ufdd0-\\ufdef\\ufeff\\ufff0-\\ufffb\\ufffe\\uffff\\u{110bd}\\u{110cd}\\u{13430}-\\u{1343f}" +
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}" +
    Array.from({ length: 13 }, (_, plane) => `\\u{${(plane + 1).toString(16)}fffe}\\u{${(plane + 1).toString(16)}ffff}`).join("") +
    "\\u{e0000}-\\u{e00ff}\\u{e01f0}-\\u{10ffff}]",
  "gu",
);

function unanswered(question) {
  throw new RangeError(`"${question.name}" was not answered, and may not be left out`);
}

/** Small letters without what is not printable and spaces at the ends, cut where their bytes exceed the question's length. */
export function wordOf(question, answer) {
  if (typeof answer !== "string") noSuch(question);
  let [cut, size] = ["", 0];
  for (const letter of answer.replace(UNPRINTABLE, " ").trim().toLowerCase()) {
    size += new TextEncoder().encode(letter).length;
    if (size > question.length) break;
    cut += letter;
  }
  return cut;
}

function numberOf(question, answer) {
  const [low, high] = [fraction(question.low), fraction(question.high)];
  if (typeof answer !== "number" || !(answer >= low && answer <= high)) noSuch(question);
  return answer;
}

/** "1/3" or "0.5" as a double. */
export function fraction(said) {
  exact(said);
  const [numerator, denominator = "1"] = said.split("/");
  return Number(numerator) / Number(denominator);
}

function cellAt(question, [latitude, longitude]) {
  const { south, north, west, east, rows, columns } = question;
  const inside = latitude >= south && latitude <= north && longitude >= west && longitude <= east;
  if (!inside) noSuch(question);
  const row = Math.floor(((latitude - south) / (north - south)) * rows);
  const column = Math.floor(((longitude - west) / (east - west)) * columns);
  return Math.min(row, rows - 1) * columns + Math.min(column, columns - 1);
}

function noSuch(question) {
  throw new RangeError(`the answer to "${question.name}" is not among those that there are`);
}

/** How Python writes a number (`text_of`): a sign in front alone, digits, and decimals or what they are divided by. */
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:[.][0-9]+|[/][1-9][0-9]*)?$/;
const LONGEST = 4000;

/** An exact text, "1/3", "0.5" or "-2", as a fraction [BigInt, BigInt] whose second part is above 0. */
export function exact(said) {
  if (typeof said !== "string" || said.length > LONGEST || !NUMBER.test(said))
    throw new RangeError("the survey has a number that is not written as one");
  const [above, below = "1"] = said.split("/");
  const [whole, decimals = ""] = above.split(".");
  return [BigInt(whole + decimals), BigInt(below) * 10n ** BigInt(decimals.length)];
}

/** The same of a number that must be above 0: an ε, or the cap on their sum. */
function positive(said) {
  const found = exact(said);
  if (found[0] <= 0n) throw new RangeError("the survey has a level or a cap that is not above 0");
  return found;
}

/** The level of each question, in the survey's order, from one name for all or a name for each; anything else is refused. */
export function chosen(survey, levels) {
  const names = survey.questions.map((question) => question.name);
  const each = typeof levels === "string" ? Object.fromEntries(names.map((name) => [name, levels])) : { ...levels };
  for (const name of Object.keys(each))
    if (!names.includes(name)) throw new RangeError(`the survey does not ask "${name}"`);
  return Object.fromEntries(
    names.map((name) => {
      const found = survey.levels.find((level) => level.name === each[name]);
      if (!found) throw new RangeError(`the survey does not offer this level for "${name}"`);
      return [name, found];
    }),
  );
}

/** What levels come to over all questions: {epsilon, cap} as exact fractions [BigInt, BigInt], and whether the cap allows it. */
export function spent(survey, levels) {
  const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
  const epsilon = Object.values(chosen(survey, levels)).reduce((sum, level) => plus(sum, positive(level.epsilon)), [0n, 1n]);
  const cap = positive(survey.cap);
  return { epsilon, cap, allowed: epsilon[0] * cap[1] <= cap[0] * epsilon[1] };
}

/** How far a logarithm may be off by the way it is worked out, as a share of it. */
const CLOSE = 1e-9;

/** ε of a question's integers at a level. The cap counts the level's own ε; so integers that tell more than it are refused. */
function told(survey, name, level) {
  const [above, below] = positive(level.epsilon);
  const found = epsilon(survey.channels[name][level.name]);
  if (!(found <= (Number(above) / Number(below)) * (1 + CLOSE)))
    throw new RangeError(`the survey's numbers for "${name}" tell more than its level says`);
  return found;
}

/** What the survey's numbers are written in: another one is another version of cloister's. */
export const FORMAT = 2;

/**
 * One person's report: exactly what leaves the page. `survey` is the survey's JSON, `answers` a value for each question's name,
 * `levels` as above, and no more in all than the survey's cap; `token` that of the invitation, or a fresh one. A survey whose
 * integers tell more than its levels say is refused, so that the cap is one on what is really told.
 */
export function respond(survey, answers, levels, { token, next = systemWords() } = {}) {
  if (survey.format !== FORMAT) throw new RangeError("the survey is of another version of this page");
  for (const name of Object.keys(answers))
    if (!survey.questions.some((question) => question.name === name)) throw new RangeError(`the survey does not ask "${name}"`);
  const each = chosen(survey, levels);
  if (!spent(survey, levels).allowed) throw new RangeError("these levels come to more than the survey lets anybody give");
  for (const [name, level] of Object.entries(each)) told(survey, name, level);
  const places = survey.questions.map((question) => placeOf(question, Object.hasOwn(answers, question.name) ? answers[question.name] : null));
  const [names, values] = [{}, {}];
  survey.questions.forEach(({ name }, index) => {
    names[name] = each[name].name;
    values[name] = report(survey.channels[name][names[name]], places[index], next);
  });
  const own = token === undefined ? newToken(next) : token;
  return { format: FORMAT, survey: survey.survey, version: survey.version, levels: names, token: own, values };
}

/** The report for the next wave of a survey that comes back: the same levels and values under another token, so nothing more is told. */
export function sendAgain(kept, { token, next = systemWords() } = {}) {
  return { ...kept, token: token === undefined ? newToken(next) : token };
}

/** 128 random bits as 32 hexadecimal digits. */
export function newToken(next = systemWords()) {
  return [next(), next()].map((word) => word.toString(16).padStart(16, "0")).join("");
}

/**
 * What each question promises at its level, from its integers: {name: {odds, epsilon}}, and the sum of ε. What tells more than its
 * level says is refused.
 */
export function promises(survey, levels) {
  const each = {};
  let sum = 0;
  for (const [name, level] of Object.entries(chosen(survey, levels))) {
    const found = told(survey, name, level);
    each[name] = { odds: Math.exp(found), epsilon: found };
    sum += found;
  }
  return { questions: each, epsilon: sum };
}
