/** The reference of the npm packages: every export is on a page, with its comment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { REFERENCES, referencePages } from "../../scripts/site/reference.ts";

const pages = referencePages();

test("every export of the npm packages has a comment", () => {
  const undocumented = pages.flatMap((page) => page.undocumented.map((one) => [page.name, one]));
  assert.deepEqual(undocumented, []);
});

test("a page has each export with its declaration and the comments of its parts", () => {
  assert.deepEqual(
    pages.map(({ target }) => `/${target.replace(/\.md$/, "")}`),
    REFERENCES.map(({ link }) => link),
  );
  const [client, quorate] = pages.map(({ text }) => text);
  assert.match(client, /^### connect\n\nMakes a client .*[\s\S]*?```ts\nfunction connect\(/m);
  assert.match(client, /^ {4}\/\*\* The members of the cluster;/m);
  assert.doesNotMatch(client, /#private/);
  assert.match(quorate, /^### startMember$/m);
  assert.doesNotMatch(quorate, /^### connect$/m);
});
