/**
 * quoratectl's commands about users and roles print what etcd 3.7's print: command-lines/
 * auth-scenarios.txt, held against the transcript of etcdctl 3.7 that is kept beside it.
 * QUORATE_RECORD=1 with etcd 3.7's programs on PATH writes the transcript again.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { etcd, skipWithoutEtcd } from "../support/executables.ts";
import {
  columnsOf,
  describe as describeDifference,
  differencesOf,
  reference,
  runColumns,
} from "./command-lines/compare.ts";
import { parseScenarios } from "./command-lines/scenario.ts";
import { formatTranscript, parseTranscript, type Transcript } from "./command-lines/transcript.ts";

const at = (name: string): string => join(import.meta.dirname, "command-lines", name);
const KEPT = at("auth-etcd-3.7.txt");
const HEADING = "# What etcd 3.7's etcdctl prints for auth-scenarios.txt, normalised.\n";

/** Whether the etcd that is installed is of the release that the transcript is of. */
function isOfRelease(): boolean {
  const { stdout } = spawnSync(etcd!.command[0], ["--version"], { encoding: "utf8" });
  return /etcd Version: 3\.7\./.test(stdout);
}

/** Without what quoratectl says of grants beyond what etcdctl says. */
function withoutWarnings(transcript: Transcript): Transcript {
  const plain = (text: string): string => text.replace(/^Warning: the grant .*\n/gm, "");
  return new Map(
    [...transcript].map(([scenario, lines]) => [
      scenario,
      new Map([...lines].map(([line, one]) => [line, { ...one, stderr: plain(one.stderr) }])),
    ]),
  );
}

const found = reference({});
const skip =
  skipWithoutEtcd || (isOfRelease() ? false : "the etcd that is installed is not of release 3.7");

describe("command lines about users and roles", { skip }, () => {
  const scenarios = parseScenarios(readFileSync(at("auth-scenarios.txt"), "utf8"));

  test("quoratectl prints what etcdctl prints", async () => {
    assert.ok(typeof found !== "string");
    const [theirs, ours] = columnsOf(found);
    const isRecording = process.env["QUORATE_RECORD"] === "1" || !existsSync(KEPT);
    const columns = [{ ...ours, member: theirs.member }, ...(isRecording ? [theirs] : [])];
    const ran = await runColumns(
      columns,
      scenarios,
      () => true,
      () => {},
    );
    if (isRecording) writeFileSync(KEPT, formatTranscript(ran.get(theirs.name)!, HEADING));
    const kept = parseTranscript(readFileSync(KEPT, "utf8"));
    const seen = differencesOf(kept, withoutWarnings(ran.get(ours.name)!), ours.name);
    assert.deepEqual(seen.map(describeDifference), []);
    const lines = [...kept.values()].reduce((sum, one) => sum + one.size, 0);
    assert.ok(lines >= 200, `${lines} lines`);
  });
});
