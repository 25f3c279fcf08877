/**
 * What a client sends in a head costs what its length costs (docs/operate/security/linear.md).
 * @slow
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpHead } from "@quorate/host";
import { growthOf } from "@quorate/host/testing";
import { fromLatin1 } from "@quorate/proto";
import { asksForWebSocket } from "../node/websocket/handshake.ts";
import { SocketExchange } from "../src/gateway/socket-exchange.ts";
import { areTrailers, parseHead } from "../src/http1/head.ts";

/** Between linear (1) and quadratic (2), with room for caches and a busy machine. */
const MAX_GROWTH = 1.5;
const SMALL = 1500;

const bytesOf = (text: string): Uint8Array => fromLatin1(text);
const parse = (bytes: Uint8Array): unknown => parseHead(bytes, 0, bytes.length, 500);
const headWith = (name: string, value: string): HttpHead =>
  ({
    method: "GET",
    path: "/",
    query: "",
    headers: new Map([[name, value]]),
    peer: "",
  }) as unknown as HttpHead;
const budget = { maxBytes: 0, usedBytes: 0 };
const callOf = (head: HttpHead): unknown =>
  new SocketExchange(head, false, budget, undefined as never).head;

/** Fillers between two letters. */
const fillers = [" ", "\t", ",", " ,", ";", "=", "a", "1", "/", "?", ":", "[", '"', "\\", "-"];

describe("growth with the length", () => {
  const cases: Record<string, (text: string) => () => unknown> = {};
  for (const name of ["Connection", "Upgrade", "Expect", "Host", "X", "Content-Length"]) {
    cases[`HTTP/1 ${name}`] = (text) => {
      const bytes = bytesOf(`GET / HTTP/1.1\r\nHost: x\r\n${name}: ${text}\r\n\r\n`);
      return () => parse(bytes);
    };
  }
  cases["HTTP/1 target"] = (text) => {
    const bytes = bytesOf(`GET /${text.replaceAll(/[ \t]/g, "+")} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return () => parse(bytes);
  };
  cases["HTTP/1 absolute target"] = (text) => {
    const target = `http://${text.replaceAll(/[ \t]/g, "+")}`;
    const bytes = bytesOf(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return () => parse(bytes);
  };
  cases["HTTP/1 trailers"] = (text) => {
    const bytes = bytesOf(`X: ${text}\r\n\r\n`);
    return () => areTrailers(bytes, 0, bytes.length);
  };
  for (const name of ["sec-websocket-protocol", "cookie"]) {
    cases[`WebSocket ${name}`] = (text) => {
      const head = headWith(name, name === "cookie" ? `token=${text}` : `Bearer,${text}`);
      return () => callOf(head);
    };
  }
  cases["WebSocket upgrade"] = (text) => {
    const head = headWith("upgrade", text);
    return () => asksForWebSocket(head);
  };

  for (const [name, prepared] of Object.entries(cases)) {
    test(name, () => {
      for (const filler of fillers) {
        const growth = growthOf(
          (size) => prepared(`a${filler.repeat(size / filler.length)}b`),
          (run) => run(),
          SMALL,
        );
        assert.ok(growth < MAX_GROWTH, `${JSON.stringify(filler)}: ${growth}`);
      }
    });
  }
});

test("options of Connection in a list with blanks", () => {
  const upgrade = (value: string): unknown => {
    const head = parse(
      bytesOf(`GET / HTTP/1.1\r\nHost: x\r\nUpgrade: y\r\nConnection: ${value}\r\n\r\n`),
    ) as { upgrade?: string; keepAlive: boolean };
    return [head.upgrade, head.keepAlive];
  };
  assert.deepEqual(upgrade("a,\t Upgrade ,b"), ["y", true]);
  assert.deepEqual(upgrade("upgrade,CLOSE"), ["y", false]);
  assert.deepEqual(upgrade("not upgrade"), [undefined, true]);
  assert.deepEqual(upgrade(","), [undefined, true]);
});

test("the token of a subprotocol", () => {
  const token = (value: string): unknown =>
    (callOf(headWith("sec-websocket-protocol", value)) as HttpHead | undefined)?.headers.get(
      "authorization",
    );
  assert.equal(token("Bearer, a b \t"), "a b");
  assert.equal(token("Bearer,"), "");
  assert.equal(token("Bearer a"), undefined);
});
