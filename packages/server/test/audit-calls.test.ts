/** Calls in the audit log whose response is waited for, and logins. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NO_PASSWORD_TEXT, TOO_MANY_FAILURES } from "@quorate/member";
import {
  AuthService,
  errorOf,
  fromUtf8,
  GrpcCode,
  KVService,
  PutRequest,
  PutResponse,
  ResponseHeader,
} from "@quorate/proto";
import { type MessageBytes, StatusError } from "@quorate/rpc";
import { toStatusError } from "@quorate/services";
import { MAX_SPARE_CALLS, PendingCalls } from "../src/audit/pending-calls.ts";
import { auditOf, contextOf, type Line, tableOf } from "./support/audited.ts";

const { Put } = KVService.methods;

describe("calls that are waited for", () => {
  test("calls that end in another order, some with errors, have lines of their own", async () => {
    const { audit, lines } = auditOf();
    const ends: ((failure?: Error) => void)[] = [];
    const response = PutResponse.encode({ header: ResponseHeader.create({ revision: 7 }) });
    const handler = (): Promise<MessageBytes> =>
      new Promise((resolve, reject) =>
        ends.push((failure) => (failure === undefined ? resolve(response) : reject(failure))),
      );
    const put = audit
      .around(tableOf(Put.path, handler as () => Promise<MessageBytes>))
      .unary.get(Put.path)!;
    for (let round = 0; round < 3; round++) {
      ends.length = 0;
      lines.length = 0;
      const calls = ["a", "b", "c", "d"].map((key, i) => {
        const context = { ...contextOf(Put.path), peerAddress: `10.0.0.7:${i}` };
        return put(PutRequest.encode({ key: fromUtf8(key) }).slice(), context);
      });
      ends[2]();
      ends[0](toStatusError(errorOf("PermissionDenied")));
      ends[3]();
      ends[1]();
      await Promise.allSettled(calls);
      const seen = lines.map((line) => [
        (line["keys"] as Line[])[0]["key"],
        line["address"],
        line["code"],
      ]);
      assert.deepEqual(seen.sort(), [
        ["a", "10.0.0.7:0", "PermissionDenied"],
        ["b", "10.0.0.7:1", "OK"],
        ["c", "10.0.0.7:2", "OK"],
        ["d", "10.0.0.7:3", "OK"],
      ]);
      await assert.rejects(calls[0] as Promise<unknown>, /permission denied/);
      assert.deepEqual(await calls[3], response);
    }
  });

  test("objects are kept for calls to come, up to a bound, without what was in them", async () => {
    const seen: unknown[] = [];
    const pending = new PendingCalls({
      succeeded: ({ request }, response) => {
        seen.push(request);
        return response;
      },
      failed: (_call, error) => {
        throw error;
      },
    });
    const request = fromUtf8("r");
    const response = Promise.resolve(new Uint8Array(0));
    const follow = () => pending.follow(response, request, contextOf(Put.path), 0);
    await Promise.all(Array.from({ length: MAX_SPARE_CALLS + 10 }, follow));
    assert.equal(pending.spareCount, MAX_SPARE_CALLS);
    await Promise.all([follow(), follow()]);
    assert.equal(pending.spareCount, MAX_SPARE_CALLS);
    assert.ok(seen.every((one) => one === request));
  });
});

test("a refused login is denied, whatever the reason: a wrong password, none to be had, too many", async () => {
  const { audit, lines } = auditOf();
  const { path } = AuthService.methods.Authenticate;
  const request = AuthService.methods.Authenticate.requestType.encode({ name: "cert" }).slice();
  for (const error of [
    toStatusError(errorOf("AuthFailed")),
    new StatusError(GrpcCode.Unknown, NO_PASSWORD_TEXT),
    new StatusError(GrpcCode.ResourceExhausted, TOO_MANY_FAILURES),
  ]) {
    const login = audit.around(tableOf(path, () => Promise.reject(error))).unary.get(path)!;
    await assert.rejects(login(request, contextOf(path)) as Promise<unknown>);
    assert.deepEqual(
      [lines.at(-1)!["verdict"], lines.at(-1)!["request"]],
      ["denied", { name: "cert" }],
    );
  }
});

test("errors of a member's services become statuses on the way, for the line and for the client", async () => {
  const { audit, lines } = auditOf();
  const inner = () => Promise.reject(errorOf("LeaseNotFound"));
  const table = { unary: new Map([[Put.path, inner]]), stream: new Map() };
  const put = audit.around(table).unary.get(Put.path)!;
  const request = PutRequest.encode({ key: fromUtf8("k") }).slice();
  await assert.rejects(put(request, contextOf(Put.path)) as Promise<unknown>, StatusError);
  assert.deepEqual([lines[0]["verdict"], lines[0]["code"]], ["failed", "NotFound"]);
});
