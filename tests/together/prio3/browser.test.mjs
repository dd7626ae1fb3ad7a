// What browsers send, against the published vectors of draft-irtf-cfrg-vdaf-20 (two servers) and against Python's reports.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as twin from "../../../src/cloister/together/prio3/browser/cloister-prio3.js";

const vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url)));
const made = process.env.JOINT_SURVEY ? JSON.parse(process.env.JOINT_SURVEY) : null;

function circuitOf(name, told) {
  if (name.includes("Count")) return twin.count();
  return name.includes("Sum") ? twin.sum(told.max_measurement) : twin.histogram(told.length, told.chunk_length);
}

for (const [name, told] of Object.entries(vectors)) {
  const shards = told.operations.filter((each) => each.operation === "shard");
  if (told.shares !== 2 || !shards.length) continue;
  test(`shards of ${name}`, () => {
    for (const step of shards) {
      const report = told.reports[step.report_index ?? 0];
      const circuit = circuitOf(name, told);
      const drawn = twin.unhex(report.rand);
      assert.equal(drawn.length, twin.randomBytes(circuit));
      const found = twin.shard(circuit, twin.unhex(told.ctx), report.measurement, twin.unhex(report.nonce), drawn);
      assert.equal(twin.hex(found.open), report.public_share);
      assert.deepEqual(found.shares.map(twin.hex), report.input_shares);
    }
  });
}

test("a report of a survey, with Python's random bytes", { skip: !made }, async () => {
  let used = 0;
  const drawn = twin.unhex(made.drawn);
  const random = (count) => {
    used += count;
    return drawn.slice(used - count, used);
  };
  const report = await twin.reportOf(made.survey, made.values, twin.unhex(made.helper), random);
  assert.equal(await twin.digestOf(made.survey), made.digest);
  assert.equal(await twin.fingerprintOf(twin.unhex(made.helper)), made.fingerprint);
  assert.deepEqual([report.nonce, report.public, report.shares], [made.nonce, made.public, made.shares]);
  process.stdout.write(`\nREPORT ${JSON.stringify(report)}\n`);
});
