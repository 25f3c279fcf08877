/** Users of whom a proxy speaks, over HTTP/2: lists of headers stay lists, others are no proxy. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { proxyClients } from "../support/proxy-clients.ts";

const SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const BODY = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };

test("a proxy's lists of groups stay lists over HTTP/2", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "proxied-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const { clientCaFile, proxyCaFile, certificates } = await proxyClients(dir);
  await using api = await startApiServer({ clientCaFile, requestHeaderCaFile: proxyCaFile });
  const who = async (
    name: keyof typeof certificates,
    headers: Record<string, string | string[]>,
  ) => {
    const { certPem: cert, keyPem: key } = certificates[name];
    const session = connect(api.url, { cert, key, rejectUnauthorized: false });
    try {
      const stream = session.request({ ":method": "POST", ":path": SELF, ...headers });
      stream.end(JSON.stringify(BODY));
      let text = "";
      for await (const chunk of stream) text += String(chunk);
      const { code, status } = JSON.parse(text);
      return code ?? status.userInfo;
    } finally {
      session.close();
    }
  };
  const headers = {
    "content-type": "application/json",
    "x-remote-user": "jane",
    "x-remote-group": ["a", "b, system:masters"],
  };
  // No names are demanded, so the stranger is a proxy, too.
  for (const name of ["proxy", "stranger"] as const)
    assert.deepEqual(await who(name, headers), {
      username: "jane",
      groups: ["a", "b, system:masters", "system:authenticated"],
    });
  assert.equal((await who("client", headers)).username, "client");
  assert.equal(await who("unknown", headers), 401);
  const single = { ...headers, "x-remote-group": "b, system:masters" };
  const groups = ["b, system:masters", "system:authenticated"];
  assert.deepEqual((await who("proxy", single)).groups, groups);
});
