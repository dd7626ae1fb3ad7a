// The browser's twin against Python's own reports: run by tests/local/test_browser_twin.py, or `node --test tests/local/`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as local from "../../src/cloister/local/browser/cloister-local.js";
import * as surveys from "../../src/cloister/local/browser/cloister-survey.js";

const twin = { ...local, ...surveys };

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));

test("the same words give the same report, and all words are used", () => {
  const seen = new Set();
  for (const { client, place, words, report } of vectors.reports) {
    const next = twin.listedWords(words);
    assert.deepEqual(twin.report(client, place, next), report, JSON.stringify({ client, place }));
    assert.equal(next.used(), words.length);
    seen.add(client.protocol);
  }
  const all = ["response", "direct", "unary", "ticks", "hashing", "subset", "hadamard", "window", "sign", "hybrid", "number", "heavy"];
  assert.deepEqual([...seen].sort(), all.sort());
});

test("the promise is worked out from the integers as Python does", () => {
  for (const { client, odds } of vectors.reports) {
    const [numerator, denominator] = twin.odds(client);
    assert.equal(numerator * BigInt(odds[1]), BigInt(odds[0]) * denominator, client.protocol);
  }
});

test("a promise is shown as a number", () => {
  const client = { protocol: "response", size: 2, heads: "0xc000000000000000" };
  assert.ok(Math.abs(twin.epsilon(client) - Math.log(3)) < 1e-12);
  assert.ok(Math.abs(twin.oddsNumber(client) - 3) < 1e-11);
  assert.equal(twin.epsilon({ ...client, heads: "0x10000000000000000" }), Infinity);
});

test("whole surveys, at one level for all questions and at a level for each", () => {
  for (const { survey, answers, levels, words, report } of vectors.surveys) {
    const next = twin.listedWords(words);
    assert.deepEqual(twin.respond(survey, answers, levels, { next }), report);
    assert.equal(next.used(), words.length);
    const { token } = report;
    assert.equal(twin.respond(survey, answers, levels, { token }).token, token);
    const again = twin.sendAgain(report);
    assert.deepEqual([again.values, again.levels], [report.values, report.levels]);
    assert.notEqual(again.token, token);
    const told = twin.promises(survey, levels);
    const epsilon = (name) => Number(survey.levels.find((level) => level.name === report.levels[name]).epsilon);
    for (const [name, each] of Object.entries(told.questions)) assert.ok(each.epsilon <= epsilon(name) + 1e-12);
    const sum = Object.keys(report.levels).reduce((all, name) => all + epsilon(name), 0);
    assert.ok(Math.abs(told.epsilon - sum) < 0.1);
  }
  assert.ok(vectors.surveys.some(({ report }) => new Set(Object.values(report.levels)).size > 1));
});

test("what levels come to is exact, and nobody gives more than the cap", () => {
  for (const { survey, levels, epsilon, allowed } of vectors.sums) {
    const told = twin.spent(survey, levels);
    assert.equal(told.epsilon[0] * BigInt(epsilon[1]), BigInt(epsilon[0]) * told.epsilon[1]);
    assert.equal(told.allowed, allowed);
  }
  assert.deepEqual(new Set(vectors.sums.map(({ allowed }) => allowed)), new Set([true, false]));
  const { survey, answers } = vectors.surveys[0];
  assert.throws(() => twin.respond({ ...survey, cap: "17.9" }, answers, "open"), /more than the survey lets anybody give/);
  assert.equal(twin.respond({ ...survey, cap: "18" }, answers, "open").levels.choice, "open");
});

test("integers that tell more than their level says are refused, so the sum that is shown is what is spent", () => {
  const { survey, answers, report } = vectors.surveys[0];
  for (const name of Object.keys(report.levels)) {
    const changed = structuredClone(survey);
    const [careful, open] = ["careful", "open"].map((level) => changed.channels[name][level]);
    changed.channels[name].careful = open;
    changed.channels[name].open = careful;
    const levels = Object.fromEntries(survey.questions.map((each) => [each.name, "careful"]));
    assert.throws(() => twin.promises(changed, levels), /tell more than its level says/, name);
    assert.throws(() => twin.respond(changed, answers, levels), /tell more than its level says/, name);
    assert.ok(twin.promises(changed, { ...levels, [name]: "open" }).epsilon, "telling less is no harm");
  }
  const certain = structuredClone(survey);
  Object.assign(certain.channels["yes-no"].careful, { heads: "0x10000000000000000" });
  assert.throws(() => twin.respond(certain, answers, "careful"), RangeError);
});

test("levels that are no choice are refused", () => {
  const { survey, answers, report } = vectors.surveys[0];
  const refused = (levels) => assert.throws(() => twin.respond(survey, answers, levels), RangeError, JSON.stringify(levels));
  refused("reckless");
  refused({});
  refused({ ...report.levels, choice: "reckless" });
  refused({ ...report.levels, elsewhere: "open" });
  const { choice: _, ...fewer } = report.levels;
  refused(fewer);
  assert.throws(() => twin.respond({ ...survey, format: 1 }, answers, "open"), /another version/);
});

test("answers that there are not, are refused", () => {
  const { survey, levels } = vectors.surveys[0];
  const refused = (answers) => assert.throws(() => twin.respond(survey, { choice: "red", ...answers }, levels), RangeError);
  refused({ choice: null });
  refused({ choice: "purple" });
  refused({ "yes-no": "perhaps" });
  refused({ several: ["a", "b", "c"] });
  refused({ several: "a" });
  refused({ number: 41 });
  refused({ number: NaN });
  refused({ number: "12" });
  refused({ place: [0, 0] });
  refused({ place: [NaN, 8.5] });
  refused({ word: 3 });
  refused({ elsewhere: true });
  assert.throws(() => twin.respond(survey, { choice: "red" }, "reckless"), RangeError);
  assert.throws(() => twin.report({ protocol: "later" }, 0), RangeError);
});

test("a blank word is no answer", () => {
  const asked = { kind: "word", name: "town", length: 2, no_answer: true };
  for (const blank of ["", "  ", "\x00", "中"]) {
    assert.equal(twin.placeOf(asked, blank), "");
    assert.throws(() => twin.placeOf({ ...asked, no_answer: false }, blank), /was not answered/);
  }
  assert.equal(twin.placeOf({ ...asked, no_answer: false }, " Ab "), "ab");
});

test("a question may be called as what every object has, and left out", () => {
  const { survey, answers, levels } = vectors.surveys[0];
  const [first] = survey.questions.filter((question) => question.no_answer);
  const called = (name) => (name === first.name ? "constructor" : name);
  const renamed = (each) => Object.fromEntries(Object.entries(each).map(([name, value]) => [called(name), value]));
  const told = {
    ...survey,
    questions: survey.questions.map((each) => ({ ...each, name: called(each.name) })),
    channels: renamed(survey.channels),
  };
  const { [first.name]: left, ...others } = answers;
  const own = typeof levels === "string" ? levels : renamed(levels);
  assert.ok(Object.hasOwn(twin.respond(told, others, own).values, "constructor"), `without ${left}`);
});

test("words of the last, incomplete run are thrown away", () => {
  assert.equal(twin.below(3n, twin.listedWords(["0xffffffffffffffff", "0x7"])), 1n);
  assert.equal(twin.below(8n, twin.listedWords(["0xffffffffffffffff"])), 7n);
});

test("the system's words are fresh and of 64 bits", () => {
  const next = twin.systemWords();
  const words = Array.from({ length: 1000 }, () => next());
  assert.equal(new Set(words).size, words.length); // a false alarm: 1000²/2^65, below 1e-13
  assert.ok(words.every((word) => word >= 0n && word < 1n << 64n));
  assert.ok(words.some((word) => word >> 63n)); // 2^-1000
});

const half = "0x8000000000000000";
const number = { low: 0, high: 100, dimensions: 1, heads: half };

test("numbers that are not a protocol's are refused, by the promise and by the report", () => {
  const window = { protocol: "window", ...number, steps: 100, outputs: 110, width: 10, shift: 0 };
  const unsound = [
    { ...window, steps: 1e300 },
    { ...window, shift: "0" },
    { ...window, width: 110 },
    { ...window, outputs: 2 ** 60 },
    { ...window, low: 100 },
    { ...window, heads: "0x20000000000000000" },
    { protocol: "direct", size: "10", heads: half },
    { protocol: "direct", size: 10, heads: "9223372036854775808" },
    { protocol: "response", size: 3, heads: half },
    { protocol: "subset", size: 5, picks: 5, inside: half },
    { protocol: "ticks", size: 5, most: 6, stay: half, rise: half },
    { protocol: "hadamard", size: 5, order: 6, heads: half },
    { protocol: "hashing", size: 8, field: 2, polynomial: 3, digits: 2, heads: half },
    { protocol: "hashing", size: 16, field: 4, polynomial: 1024, digits: 2, heads: half },
    { protocol: "number", fill: "middle", value: { protocol: "direct", size: 2, heads: half }, answered: {} },
    { protocol: "constructor" },
  ];
  for (const client of unsound) {
    assert.throws(() => twin.odds(client), RangeError, JSON.stringify(client));
    assert.throws(() => twin.report(client, 1), RangeError, JSON.stringify(client));
  }
  assert.ok(twin.epsilon(window) >= 0 && Number.isInteger(twin.report(window, 17)));
});

test("an answer that the protocol is not for makes no report", () => {
  const bits = { size: 3, stay: half, rise: "0x4000000000000000" };
  const beyond = [
    [{ protocol: "response", size: 2, heads: half }, 7],
    [{ protocol: "direct", size: 3, heads: half }, 3],
    [{ protocol: "unary", ...bits }, 5],
    [{ protocol: "ticks", ...bits, most: 1 }, [0, 1]],
    [{ protocol: "ticks", ...bits, most: 2 }, [3]],
    [{ protocol: "hadamard", size: 3, order: 4, heads: half }, 5],
    [{ protocol: "sign", ...number, high: 1 }, 55],
    [{ protocol: "sign", ...number }, NaN],
    [{ protocol: "sign", ...number }, null],
  ];
  for (const [client, place] of beyond) assert.throws(() => twin.report(client, place), RangeError, JSON.stringify(client));
});

test("the promise holds for coins the wrong way round, too", () => {
  const turned = { protocol: "unary", size: 3, stay: "0x4000000000000000", rise: "0xc000000000000000" };
  assert.ok(Math.abs(twin.oddsNumber(turned) - 9) < 1e-9);
  assert.ok(Math.abs(twin.oddsNumber({ ...turned, protocol: "ticks", most: 3 }) - 27) < 1e-9);
});

test("the promise of thousands of options is worked out at once", () => {
  const client = { protocol: "ticks", size: 4096, most: 4096, stay: "0x8000400000000000", rise: "0x7fffc00000000000" };
  assert.ok(Math.abs(twin.epsilon(client) - 4096 * Math.log(0x80004 / 0x7fffc)) < 1e-9);
});
