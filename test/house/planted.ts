/** For tests of rules: small trees with one violation, or none. */
import assert from "node:assert/strict";
import type { Finding, SourceFile } from "./tree.ts";

type Rule = (files: readonly SourceFile[]) => Finding[];

/** Files by path. */
export function filesOf(texts: Readonly<Record<string, string>>): SourceFile[] {
  return Object.entries(texts).map(([path, text]) => ({ path, text }));
}

/** Asserts that the rule finds exactly one thing, at `where`, described by `what`. */
export function finds(
  rule: Rule,
  texts: Readonly<Record<string, string>>,
  where: string,
  what: RegExp,
): void {
  const findings = rule(filesOf(texts));
  assert.equal(findings.length, 1, JSON.stringify(findings));
  assert.equal(findings[0].where, where);
  assert.match(findings[0].what, what);
}

/** Asserts that the rule finds nothing. */
export function clean(rule: Rule, texts: Readonly<Record<string, string>>): void {
  assert.deepEqual(rule(filesOf(texts)), []);
}
