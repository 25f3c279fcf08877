/**
 * quoratectl's commands about users and roles print what etcd 3.7's print: command-lines/
 * auth-scenarios.txt, held against the transcript of etcdctl 3.7 that is kept beside it.
 * QUORATE_RECORD=1 with etcd 3.7's programs on PATH writes the transcript again.
 * @slow
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { quoratectl, quorateutl } from "@quorate/ctl";
import { type Executable, etcd, quorate, skipWithoutEtcd } from "../support/executables.ts";
import {
  columnsOf,
  describe as describeDifference,
  differencesOf,
  reference,
  runColumns,
} from "./command-lines/compare.ts";
import type { Column } from "./command-lines/run.ts";
import { parseScenarios } from "./command-lines/scenario.ts";
import { innerTool } from "./command-lines/tools.ts";
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

const scenarios = parseScenarios(readFileSync(at("auth-scenarios.txt"), "utf8"));
const inner = {
  ctl: innerTool(quoratectl),
  utl: innerTool(quorateutl),
  ownCtl: innerTool(quoratectl),
};

/**
 * etcd looks at the first permission of a key alone when one is granted again, so that one with
 * another range before it makes a second permission of the same key and range, and the first stays.
 * Quorate replaces it: what was taken from READWRITE to READ is not to be written any more.
 */
const REPLACED_GRANT = /^roles \| role get r3 \|/;

/** What quoratectl prints with a member, held against what etcdctl printed. */
async function compare(member: Executable, recorder?: Column): Promise<void> {
  const ours = { name: "quoratectl", member, ...inner };
  const columns = recorder === undefined ? [ours] : [ours, recorder];
  const ran = await runColumns(
    columns,
    scenarios,
    () => true,
    () => {},
  );
  if (recorder !== undefined)
    writeFileSync(KEPT, formatTranscript(ran.get(recorder.name)!, HEADING));
  const kept = parseTranscript(readFileSync(KEPT, "utf8"));
  const seen = differencesOf(kept, withoutWarnings(ran.get(ours.name)!), ours.name);
  const unknown = seen.map(describeDifference).filter((one) => !REPLACED_GRANT.test(one));
  assert.deepEqual(unknown, []);
  assert.equal(seen.length, member.name === "etcd" ? 0 : 1);
  const lines = [...kept.values()].reduce((sum, one) => sum + one.size, 0);
  assert.ok(lines >= 200, `${lines} lines`);
}

describe("command lines about users and roles", () => {
  test("quoratectl with Quorate prints what etcdctl prints with etcd", () => compare(quorate));

  const skip =
    skipWithoutEtcd || (isOfRelease() ? false : "the etcd that is installed is not of release 3.7");
  test("quoratectl with etcd prints what etcdctl prints", { skip }, () => {
    const found = reference({});
    assert.ok(typeof found !== "string");
    const isRecording = process.env["QUORATE_RECORD"] === "1";
    return compare(etcd!, isRecording ? columnsOf(found)[0] : undefined);
  });
});
