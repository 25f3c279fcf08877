/**
 * docs/guide/users-and-roles.md, executed.
 * @slow
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../support/executables.ts";
import { runGuide, skipGuides } from "./guide.ts";

test("the guide to users and roles does what it says", {
  skip: skipGuides || skipWithout("openssl"),
}, async () => {
  const { printed } = await runGuide("guide/users-and-roles.md");
  assert.match(printed("grant-permission auditor read billing --prefix 2>&1"), /"billing2" is one/);
  assert.match(
    printed("auth can-i billing put"),
    /^yes\nrole billing: READWRITE [\s\S]*\nyes\nrole auditor: READ [\s\S]*\nno\n[\s\S]*as it should be\n/m,
  );
  assert.match(
    printed("auth enable"),
    /Authentication Enabled\n[\s\S]*certificate is no user's\n[\s\S]*Authentication Status: true\n/,
  );
  assert.match(printed("put other/7"), /^OK\n[\s\S]*no role allows it\n[\s\S]*billing\/7\npaid\n$/);
  assert.match(printed("auth can-i ann delete"), /^no\n[\s\S]*User: ann\n[\s\S]*Role auditor\n/);
  assert.match(printed('grep \'"user":"billing"\''), /"proof":"certificate".*"verdict":"denied"/);
  assert.match(printed("passwd ann"), /the old one is no more\nbilling\/7\npaid\n$/m);
});
