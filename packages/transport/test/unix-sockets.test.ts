/** Peer URLs of unix sockets; contract.test.ts runs the transport's contract over them. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { leaveStaleSocket } from "@quorate/host/testing";
import { RecordingListener } from "@quorate/transport/testing";
import { parsePeerUrl } from "../node/dial.ts";
import { PeerCalls } from "../node/peer-calls.ts";
import { RealNetwork } from "./helpers/network.ts";

describe("peer URLs", () => {
  it("name a host and a port, or the file of a unix socket and the host in it", () => {
    const parts = (url: string) => {
      const target = parsePeerUrl(url);
      return target && [target.secure, target.host, target.port, target.path];
    };
    assert.deepEqual(parts("http://a:1"), [false, "a", 1, undefined]);
    assert.deepEqual(parts("https://[::1]:1"), [true, "::1", 1, undefined]);
    assert.deepEqual(parts("unix://localhost:m1"), [false, "localhost", 0, "localhost:m1"]);
    assert.deepEqual(parts("unix:///run/q/m1"), [false, "localhost", 0, "/run/q/m1"]);
    assert.deepEqual(parts("unixs:/run/m1"), [true, "localhost", 0, "/run/m1"]);
    for (const url of ["unix://", "unix:", "http://a", "ftp://a:1", "unix://a?b", ""])
      assert.equal(parts(url), undefined, url);
  });
});

describe("a unix socket of a member", () => {
  it("serves single requests too, and replaces the file that a killed member left", async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "quorate-unix-"));
    t.after(() => rmSync(directory, { recursive: true }));
    const network = new RealNetwork(undefined, directory);
    t.after(() => network.close());
    const http = () => ({ status: 200, headers: {}, body: "here" });
    leaveStaleSocket(join(directory, "0"));
    const one = await network.start(1n, new RecordingListener(), undefined, { http });
    assert.ok(statSync(join(directory, "0")).isSocket());
    const calls = new PeerCalls(undefined);
    t.after(() => calls.close());
    const read = async () => {
      const { body } = await calls.call(one.urls[0], "/version", undefined, 60_000);
      return new TextDecoder().decode(body);
    };
    assert.equal(await read(), "here");
  });
});
