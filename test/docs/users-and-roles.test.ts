/** docs/guide/users-and-roles.md, executed. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { runGuide, skipGuides } from "./guide.ts";

function skipWithoutOpenssl(): string | false {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return false;
  } catch {
    return "openssl is not installed";
  }
}

test("the guide to users and roles does what it says", {
  skip: skipGuides || skipWithoutOpenssl(),
}, async () => {
  const { outputs } = await runGuide("guide/users-and-roles.md");
  const printed = (part: string): string => {
    const found = outputs.filter(({ command }) => command.includes(part));
    assert.equal(found.length, 1, `one block has ${part}`);
    return found[0].printed;
  };
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
