/**
 * Output for terminals: tables and hints; and commands by prefix.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exit } from "@quorate/cli";
import { painted, plain, runProgram } from "@quorate/cli";
import { FakeIo } from "@quorate/cli/testing";
import { MemberListResponse, ResponseHeader } from "@quorate/proto";
import { adviceFor } from "../src/connect/advice.ts";
import { asExit } from "../src/connect/failed-call.ts";
import { memberListForm } from "../src/printers/member-forms.ts";
import { layOut, Printer } from "../src/printers/printer.ts";
import { quoratectl } from "../src/quoratectl.ts";

const table = {
  header: ["ID", "name", "error"],
  rows: [
    ["8e9e", "a", ""],
    ["91", "longer", ""],
  ],
} as const;

test("columns are aligned under a heading, and empty ones left out", () => {
  assert.equal(layOut(table, { paint: plain, columns: 80 }), "ID    NAME\n8e9e  a\n91    longer\n");
  assert.ok(
    layOut(table, { paint: painted, columns: 80 }).startsWith("\u001b[1mID    NAME\u001b[0m\n"),
  );
});

test("where the columns do not fit, each row is a block", () => {
  assert.equal(
    layOut(table, { paint: plain, columns: 10 }),
    "ID    8e9e\nNAME  a\n\nID    91\nNAME  longer\n",
  );
});

test("the simple format is a table on a terminal and lists in a pipe", () => {
  const member = {
    ID: 0x8e9en,
    name: "a",
    peerURLs: ["http://p"],
    clientURLs: ["http://c"],
    isLearner: false,
  };
  const response = MemberListResponse.create({
    header: ResponseHeader.create({}),
    members: [member],
  });
  const io = new FakeIo();
  new Printer({ format: "simple", isHex: false }, io).form(memberListForm, response);
  assert.equal(io.out, "8e9e, started, a, http://p, http://c, false\n");
  const terminal = new FakeIo();
  const page = { paint: plain, columns: 80 };
  new Printer({ format: "simple", isHex: false, page }, terminal).form(memberListForm, response);
  assert.equal(
    terminal.out,
    "ID    STATUS   NAME  PEER ADDRS  CLIENT ADDRS  IS LEARNER\n8e9e  started  a     http://p    http://c      false\n",
  );
});

test("a method that the server lacks: a clear text, with etcdctl's exit code", () => {
  const exitFor = (message: string) =>
    asExit(
      Object.assign(new Error(message), { name: "ClientError", grpcCode: 12 }),
      new FakeIo(),
    ) as Exit;
  for (const message of [
    "method UserList not implemented",
    "unknown method UserList for service etcdserverpb.Auth",
  ]) {
    const { code, message: text } = exitFor(message);
    assert.equal(code, 1);
    assert.match(
      text,
      /^this server does not support users and roles yet \(UserList is not implemented\); every client .*--client-cert-auth/,
    );
  }
  assert.equal(
    exitFor("method Downgrade not implemented").message,
    "this server does not support this command: method Downgrade not implemented",
  );
});

test("failures that an operator can fix come with advice", () => {
  assert.match(adviceFor("connection refused")!, /no member listens there/);
  assert.match(
    adviceFor("the connection was closed during the TLS handshake")!,
    /one side uses TLS/,
  );
  assert.match(adviceFor("the connection was closed")!, /may require TLS/);
  assert.match(adviceFor("the server there does not speak gRPC")!, /client URL/);
  assert.match(adviceFor("self-signed certificate in certificate chain")!, /--cacert/);
  assert.match(adviceFor("etcdserver: user name is empty")!, /--user/);
  assert.equal(adviceFor("etcdserver: key is not provided"), undefined);
});

test("on a terminal a flag beside its variable, and several endpoints for a snapshot, come with advice", async () => {
  for (const [args, error, hint] of [
    [
      ["get", "a", "--endpoints=b"],
      /^Error: conflicting environment variable "ETCDCTL_ENDPOINTS"/,
      /ETCDCTL_ENDPOINTS=VALUE quoratectl/,
    ],
    [
      ["snapshot", "save", "f"],
      /^Error: snapshot must be requested to one selected node/,
      /ETCDCTL_ENDPOINTS=ENDPOINT quoratectl snapshot/,
    ],
  ] as const) {
    for (const isTerminal of [true, false]) {
      const io = new FakeIo();
      io.env["ETCDCTL_ENDPOINTS"] = "a:1,b:1";
      io.stderrIsTerminal = isTerminal;
      assert.notEqual(await runProgram(quoratectl, args, io), 0);
      assert.match(io.err, error);
      assert.equal(hint.test(io.err), isTerminal, io.err);
    }
  }
});

test("a command is found by an unambiguous prefix of its name", async () => {
  const run = async (...args: string[]): Promise<string> => {
    const io = new FakeIo();
    await runProgram(quoratectl, args, io);
    return io.err + io.out;
  };
  assert.match(await run("ver"), /^quoratectl version: /);
  assert.match(await run("lea", "gr"), /^Error: lease grant command needs TTL argument/);
  assert.match(await run("mo", "x", "y"), /^Error: move-leader command needs 1 argument/);
  assert.match(await run("e"), /^Error: unknown command "e" for "quoratectl"/);
});
