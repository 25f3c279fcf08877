/** What a proxy passes on of a client's call. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AuthService, KVService } from "@quorate/proto";
import { LOCAL_CALL } from "@quorate/rpc";
import { passedOn } from "../src/upstream/caller.ts";

test("a login has the address that it comes from, whatever the client says; other calls have none", () => {
  const fields: Readonly<Record<string, string>> = {
    "x-forwarded-for": "192.0.2.99",
    token: "t",
    other: "x",
  };
  const from = (path: string, peerAddress: string) =>
    passedOn({ ...LOCAL_CALL, path, peerAddress, metadata: (key) => fields[key] });
  const token = { name: "token", value: "t" };
  const address = (value: string) => ({ name: "x-forwarded-for", value });
  const { path: login } = AuthService.methods.Authenticate;
  assert.deepEqual(from(login, "192.0.2.1:7"), [address("192.0.2.1"), token]);
  assert.deepEqual(from(login, "[2001:db8::1]:7"), [address("2001:db8::1"), token]);
  assert.deepEqual(from(KVService.methods.Put.path, "192.0.2.1:7"), [token]);
});
