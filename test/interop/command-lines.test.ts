/**
 * The same command lines through etcdctl against etcd, quoratectl against Quorate and etcdctl
 * against Quorate come out the same, but for the differences that are listed with their reasons;
 * quoratectl is held to what etcd 3.7's own programs printed as well. It can be run by hand: npm
 * run compare:commands.
 * @slow
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import {
  columnsOf,
  differencesOf,
  KEPT_RELEASE,
  keptTranscript,
  knownDifferences,
  readScenarios,
  reference,
  runColumns,
  verdict,
} from "./command-lines/compare.ts";
import type { Transcript } from "./command-lines/transcript.ts";

const MIN_LINES = 150;
const found = reference({});

describe("command lines", { skip: typeof found === "string" ? found : false }, () => {
  const scenarios = readScenarios();
  let transcripts: ReadonlyMap<string, Transcript>;

  before(async () => {
    if (typeof found === "string") return;
    transcripts = await runColumns(
      columnsOf(found),
      scenarios,
      () => true,
      () => {},
    );
  });

  test("there are at least 150 command lines, and every column ran all of them", () => {
    const lines = scenarios.reduce((sum, { steps }) => sum + steps.length, 0);
    assert.ok(lines >= MIN_LINES, `${lines} lines`);
    for (const [column, transcript] of transcripts) {
      const ran = [...transcript.values()].reduce((sum, one) => sum + one.size, 0);
      assert.equal(ran, lines, column);
    }
  });

  test("quoratectl against Quorate, and etcdctl against Quorate, differ from etcdctl against etcd as is listed", () => {
    const seen = ["quoratectl", "etcdctl"].flatMap((column) =>
      differencesOf(transcripts.get("etcd")!, transcripts.get(column)!, column),
    );
    assert.deepEqual(
      verdict(seen, knownDifferences("3.4"), () => true),
      [],
    );
  });

  test(`quoratectl against Quorate differs from etcd ${KEPT_RELEASE}'s programs as is listed`, () => {
    const seen = differencesOf(keptTranscript(), transcripts.get("quoratectl")!, "quoratectl");
    const known = knownDifferences(KEPT_RELEASE).filter(({ column }) => column === "quoratectl");
    assert.deepEqual(
      verdict(seen, known, () => true),
      [],
    );
  });

  test("no difference is listed without a reason", () => {
    for (const release of ["3.4", KEPT_RELEASE]) {
      for (const { scenario, line, reason } of knownDifferences(release))
        assert.ok(reason.length > 5, `${release}: ${scenario} | ${line}`);
    }
  });
});
