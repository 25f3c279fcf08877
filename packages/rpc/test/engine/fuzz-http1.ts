/**
 * HTTP/1.1 under mutated requests. What the engine takes for a request, Node's strict parser takes
 * for the same one: otherwise a request could hide behind another one on its way through a proxy.
 * The engine may refuse more. However the bytes are cut, the responses are the same, there is one
 * for each request, and nothing stays counted.
 */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import type { HttpExchangeHandler, Random } from "@quorate/host";
import { fromLatin1, toLatin1 } from "@quorate/proto";
import { pick } from "../../../../test/support/random.ts";
import { HTTP1_LIMITS, Http1Client, responses } from "./http1.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];
const TARGETS = ["/", "/a?b=c", "/v3/kv/put", "*", "http://x/a", "/%20", "//x/.."];
const FIELDS = [
  "Accept: */*",
  "Connection: keep-alive",
  "Connection: close",
  "Content-Type: application/json",
  "Cookie: a=b",
  "Expect: 100-continue",
  `X-Long: ${"y".repeat(300)}`,
  "Upgrade: websocket",
];
/** What smuggling is made of. */
const PARTS = [
  ..."\r\n\t :;,\0\x7f\x80\x0b-+_0aA#?",
  "\r\n",
  "\r\n\r\n",
  "\n\n",
  " HTTP/1.1",
  "\r\nContent-Length: 5",
  "\r\nContent-Length: 0",
  "\r\nTransfer-Encoding: chunked",
  "\r\nTransfer-Encoding: identity",
  "\r\nHost: y",
  "0\r\n\r\n",
  "5\r\nabcde\r\n",
  "0x",
  "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
];

function body(random: Random): string {
  return "b".repeat(random.below(3) === 0 ? random.below(3000) : random.below(20));
}

function chunks(random: Random, text: string): string {
  let out = "";
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(text.length - at);
    const extension = random.below(4) === 0 ? ";a=b" : "";
    out += `${size.toString(16)}${extension}\r\n${text.slice(at, at + size)}\r\n`;
    at += size;
  }
  return `${out}0\r\n${random.below(4) === 0 ? "X-Trailer: 1\r\n" : ""}\r\n`;
}

/** A good request. */
function request(random: Random): string {
  const version = random.below(8) === 0 ? "1.0" : "1.1";
  const method = pick(random, METHODS);
  let text = `${method} ${pick(random, TARGETS)} HTTP/${version}\r\nHost: x\r\n`;
  for (let count = random.below(4); count > 0; count--) text += `${pick(random, FIELDS)}\r\n`;
  const sent = body(random);
  switch (random.below(3)) {
    case 0:
      return `${text}\r\n`;
    case 1:
      return `${text}Content-Length: ${sent.length}\r\n\r\n${sent}`;
    default:
      return `${text}Transfer-Encoding: chunked\r\n\r\n${chunks(random, sent)}`;
  }
}

function mutate(random: Random, text: string): string {
  let result = text;
  for (let changes = random.below(4); changes > 0; changes--) {
    // Mostly at the beginning, where the heads are.
    const at = random.below(random.below(2) === 0 ? Math.min(120, result.length) : result.length);
    const end = at + random.below(1 + Math.min(12, result.length - at));
    const put =
      random.below(3) === 0 ? String.fromCharCode(random.below(256)) : pick(random, PARTS);
    switch (random.below(4)) {
      case 0:
        result = result.slice(0, at) + put + result.slice(at);
        break;
      case 1:
        result = result.slice(0, at) + put + result.slice(at + 1);
        break;
      case 2:
        result = result.slice(0, at) + result.slice(end);
        break;
      default:
        result = result.slice(0, end) + result.slice(at);
    }
  }
  return result;
}

/** A handler that notes each complete request, and responds at once, or during the body. */
function noting(requests: string[], early: boolean): HttpExchangeHandler {
  return (exchange) => {
    const { method, path, query } = exchange.head;
    const pieces: string[] = [];
    if (early) exchange.respond({ status: 200, headers: {}, body: "early" });
    return {
      data: (bytes) => void pieces.push(toLatin1(bytes)),
      ended: () => {
        requests.push(`${method} ${path}${query && "?"}${query} ${pieces.join("")}`);
        exchange.start(200, {});
        exchange.send(fromLatin1("fine"));
        exchange.end();
      },
    };
  };
}

interface Outcome {
  readonly requests: readonly string[];
  readonly text: string;
  readonly served: number;
}

/** What the engine makes of the bytes, in pieces of random sizes or whole. */
function serve(text: string, random: Random | undefined, early = false): Outcome {
  const requests: string[] = [];
  const client = new Http1Client(noting(requests, early));
  let received = "";
  for (let at = 0; at < text.length; ) {
    const size = random === undefined ? text.length : 1 + random.below(text.length - at);
    client.send(text.slice(at, at + size));
    received += client.take();
    at += size;
    assert.ok(client.countedBytes <= HTTP1_LIMITS.maxHeaderListBytes + 3 * text.length + 4096);
  }
  const { connection, exchanges } = client;
  const served = exchanges.length;
  const answers = responses(received).filter((status) => status !== "100").length;
  const isRefused = connection.ending && !client.isDestroyed;
  const isOpen = client.shared.counters.openRequests;
  assert.ok(answers >= served - isOpen - (early ? 0 : 1), `${answers} answers to ${served}`);
  assert.ok(answers <= served + (isRefused ? 1 : 0), `${answers} answers to ${served}`);
  connection.lost();
  assert.equal(client.countedBytes, 0);
  assert.equal(client.shared.counters.openRequests, 0);
  return { requests, text: received, served };
}

/** The socket of Node's server: its bytes are pushed, and what it writes is dropped. */
class Pipe extends Duplex {
  override _read(): void {}
  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done();
  }
}

/** The complete requests that Node's strict parser finds, and its error. */
async function byNode(text: string): Promise<{ requests: string[]; error: string }> {
  const requests: string[] = [];
  let error = "";
  let open = 0;
  const server = createServer({ maxHeaderSize: 65_536, insecureHTTPParser: false });
  const note = (incoming: IncomingMessage) => {
    open++;
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      open--;
      // A "?" without a query is the same for the engine.
      const target = (incoming.url ?? "")
        .replace(/^https?:\/\/[^/?]+/i, "")
        .replace(/^([^?]*)\?$/, "$1");
      const path = target.startsWith("/") || target === "*" ? target : `/${target}`;
      requests.push(`${incoming.method} ${path} ${Buffer.concat(pieces).toString("latin1")}`);
    });
  };
  server.on("request", (incoming, response) => {
    note(incoming);
    response.end("fine");
  });
  server.on("checkContinue", (incoming, response) => {
    note(incoming);
    response.end("fine");
  });
  server.on("upgrade", (incoming) => note(incoming));
  // The socket stays: the requests before the broken one are still delivered.
  server.on("clientError", (failed: Error & { code?: string }) => {
    error ||= failed.code ?? failed.message;
  });
  const pipe = new Pipe();
  pipe.on("error", () => {});
  server.emit("connection", pipe);
  pipe.push(Buffer.from(text, "latin1"));
  for (let turn = 0; turn < 3 || (open > 0 && turn < 10); turn++)
    await new Promise((resolve) => setImmediate(resolve));
  pipe.destroy();
  server.close();
  return { requests, error };
}

/** Requests that the engine takes and Node does not: methods that it does not know. */
const OWN_WAYS: ReadonlySet<string> = new Set(["HPE_INVALID_METHOD"]);

export async function fuzzHttp1(random: Random): Promise<void> {
  let text = "";
  for (let count = 1 + random.below(3); count > 0; count--) text += request(random);
  text = mutate(random, text);
  const whole = serve(text, undefined);
  const cut = serve(text, random);
  const shown = JSON.stringify(text);
  assert.equal(cut.text, whole.text, `cut otherwise: ${shown}`);
  assert.deepEqual(cut.requests, whole.requests);
  serve(text, random, true);
  const { requests, error } = await byNode(text);
  if (OWN_WAYS.has(error)) return;
  const known = whole.requests.slice(0, requests.length);
  assert.deepEqual(known, requests.slice(0, known.length), `read otherwise: ${shown}`);
  assert.ok(
    whole.requests.length <= requests.length,
    `accepted, but by Node refused with ${error}: ${shown}`,
  );
}
