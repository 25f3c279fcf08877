/**
 * The house rules over the repository itself. rules.test.ts and names.test.ts plant a violation for
 * each.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { REMOVED } from "../../scripts/contributed.ts";
import { checkBans } from "./bans.ts";
import { checkDependencies } from "./dependencies.ts";
import { checkDirections, checkEntryPoints } from "./directions.ts";
import { checkErrorClasses, checkInvariants } from "./errors.ts";
import { checkCycles, checkDeadFiles, checkFolderCycles, checkMissing } from "./graph.ts";
import { checkConstructors, checkExportedNames } from "./names.ts";
import { checkCasts, checkPackedLiterals } from "./packed.ts";
import { checkRegexes, checkSample } from "./regexes.ts";
import { checkStaleNames } from "./stale.ts";
import { checkLeftovers, checkLineWidth } from "./text.ts";
import { checkTlsContexts } from "./tls-contexts.ts";
import { type Finding, formatFindings, readTree, type SourceFile } from "./tree.ts";

const files = readTree();
const generated = readTree(undefined, "packages/proto/src/gen");

const rules: readonly (readonly [
  name: string,
  rule: (files: readonly SourceFile[]) => Finding[],
])[] = [
  ["imports run one way and through entry points", checkDirections],
  ["each package has one entry point", checkEntryPoints],
  ["pure code touches no time, randomness, process or Node", checkBans],
  ["TLS contexts have one maker", checkTlsContexts],
  ["error classes follow the convention", checkErrorClasses],
  ["each invariant is enforced in one file", checkInvariants],
  ["a package exports a name once", checkExportedNames],
  ["constructors take few parameters", checkConstructors],
  ["regular expressions are linear", checkRegexes],
  ["expressions that are listed as proved are linear", checkSample],
  ["no literal is spread into a literal", checkPackedLiterals],
  ["values have the types that they are declared to have", checkCasts],
  ["no import cycles", checkCycles],
  ["the folders of a package are layers", checkFolderCycles],
  ["no dead files", (all) => checkDeadFiles(all, generated)],
  ["no import of a file that is not there", checkMissing],
  ["lines fit", (all) => checkLineWidth(all)],
  ["no leftovers", checkLeftovers],
  // Pages go on naming what a package had that was taken out.
  [
    "comments and pages name what there is",
    (all) => (REMOVED.length > 0 ? [] : checkStaleNames(all)),
  ],
  ["dependencies are pinned, justified and declared", checkDependencies],
];

test("the tree is read", () => {
  assert.ok(files.some((file) => file.path === "packages/proto/index.ts"));
  assert.ok(files.some((file) => file.path === "test/house/house.test.ts"));
  assert.ok(!files.some((file) => file.path.includes("node_modules/")));
});

for (const [name, rule] of rules) {
  test(name, () => {
    const findings = rule(files);
    assert.equal(findings.length, 0, `\n${formatFindings(findings)}`);
  });
}
