/** Users and roles in a record: what is written is read, and what is cut short is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, WireError } from "@quorate/proto";
import { readUsersList, usersList } from "../src/format.ts";

const LISTS = {
  users: new Map<string, readonly string[]>([
    ["ann", ["a", "ü"]],
    ["root", ["root"]],
    ["ünsal", []],
  ]),
  roles: new Map([
    ["a", [{ permType: 2, key: fromUtf8("a/"), rangeEnd: fromUtf8("a0") }]],
    ["ü", []],
  ]),
};

test("a list is read as it was written; one that is cut within a message is refused", () => {
  const bytes = usersList(LISTS);
  assert.deepEqual(readUsersList(bytes), LISTS);
  assert.deepEqual(readUsersList(usersList({ users: new Map(), roles: new Map() })).users.size, 0);
  let whole = 0;
  for (let length = 0; length < bytes.length; length++) {
    try {
      const { users, roles } = readUsersList(bytes.subarray(0, length));
      assert.ok(users.size + roles.size < 5);
      whole++;
    } catch (error) {
      assert.ok(error instanceof RangeError || error instanceof WireError, String(error));
    }
  }
  assert.equal(whole, 5, "between two messages alone");
  const unknown = bytes.slice();
  unknown[0] = 3;
  assert.throws(() => readUsersList(unknown), /3 is no kind of a user or a role/);
});
