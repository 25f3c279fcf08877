/**
 * The client of S3: Amazon's published examples of signatures, and a server that fails in the ways
 * that servers do. Servers of others are in test/interop.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { ObjectStoreError, type ObjectStoreErrorCode } from "@quorate/backup";
import type { Clock } from "@quorate/host";
import { nodeClock, nodeRandom } from "@quorate/host/node";
import { sha256Hex, signedHeaders } from "../node/s3-signature.ts";
import { PART_BYTES, type S3Options, S3Store } from "../node/s3-store.ts";

const CREDENTIALS = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  sessionToken: undefined,
};

describe("a signature", () => {
  // "Examples: Signature Calculations" in Amazon's reference of the S3 API.
  const signatureOf = (
    method: string,
    path: string,
    headers: Record<string, string>,
    body: string,
  ): string => {
    const url = new URL(`https://examplebucket.s3.amazonaws.com${path}`);
    const timeMs = Date.UTC(2013, 4, 24);
    const request = { method, url, headers, bodyHash: sha256Hex(body) };
    const signed = signedHeaders(request, CREDENTIALS, "us-east-1", timeMs);
    return signed["authorization"]!.replace(/.*Signature=/, "");
  };

  test("is Amazon's, for a read of a range, a write, and lists", () => {
    assert.equal(
      signatureOf("GET", "/test.txt", { range: "bytes=0-9" }, ""),
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
    assert.equal(
      signatureOf(
        "PUT",
        "/test%24file.text",
        { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
        "Welcome to Amazon S3.",
      ),
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    );
    assert.equal(
      signatureOf("GET", "/?lifecycle=", {}, ""),
      "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    );
    assert.equal(
      signatureOf("GET", "/?max-keys=2&prefix=J", {}, ""),
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    );
  });
});

type Handler = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

/** Timers that wait a hundredth of the time. */
const quickClock: Clock = Object.assign(Object.create(nodeClock) as Clock, {
  after: (ms: number, task: () => void) => nodeClock.after(ms / 100, task),
});

async function serve(context: TestContext, handler: Handler, options: Partial<S3Options> = {}) {
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push(`${request.method} ${request.url}`);
    handler(request, response, Buffer.concat(chunks));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const store = new S3Store(
    {
      endpoint: new URL(`http://127.0.0.1:${port}`),
      region: "us-east-1",
      bucket: "backups",
      prefix: "a b/",
      isPathStyle: true,
      ...options,
    },
    { clock: quickClock, random: nodeRandom(), credentials: async () => CREDENTIALS },
  );
  context.after(async () => {
    await store.close();
    server.closeAllConnections();
    server.close();
  });
  return { store, requests };
}

function failsWith(code: ObjectStoreErrorCode, text: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof ObjectStoreError && error.code === code && text.test(error.message);
}

const contentOf = (bytes: Uint8Array) =>
  async function* () {
    yield bytes;
  };

async function read(store: S3Store, name: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.get(name)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

describe("a store of S3", () => {
  test("repeats what can pass, a bounded number of times, and not what cannot", async (context) => {
    let failures = 3;
    const { store, requests } = await serve(context, (_request, response) => {
      response.statusCode = failures-- > 0 ? 503 : 200;
      response.end();
    });
    await store.put("one", 3, contentOf(new Uint8Array(3)));
    assert.deepEqual(requests, Array(4).fill("PUT /backups/a%20b/one"));
    failures = 1000;
    requests.length = 0;
    await assert.rejects(store.remove("one"), failsWith("Unavailable", /DELETE got 503/));
    assert.equal(requests.length, 6);
    const refusing = await serve(context, (_request, response) => {
      response.statusCode = 403;
      response.end("<Error><Code>AccessDenied</Code><Message>No &amp; no.</Message></Error>");
    });
    await assert.rejects(
      refusing.store.list(),
      failsWith("Refused", /GET got 403: AccessDenied: No & no\./),
    );
    assert.equal(refusing.requests.length, 1);
  });

  test("a server that is not there is named", async (context) => {
    const { store } = await serve(context, () => {}, { endpoint: new URL("http://127.0.0.1:1") });
    await assert.rejects(
      store.list(),
      failsWith("Unavailable", /s3:\/\/backups\/a b\/.*ECONNREFUSED/),
    );
  });

  test("reads lists of several pages, and refuses what is none", async (context) => {
    const page = (names: readonly string[], next?: string): string =>
      `<ListBucketResult>${names.map((name) => `<Contents><Key>a b/${name}</Key><Size>${name.length}</Size></Contents>`).join("")}${next === undefined ? "" : `<NextContinuationToken>${next}</NextContinuationToken>`}</ListBucketResult>`;
    const { store, requests } = await serve(context, (request, response) => {
      response.end(
        request.url?.includes("continuation-token") === true
          ? page(["ccc"])
          : page(["a&lt;", "bb", "directory/"], "1/2="),
      );
    });
    assert.deepEqual(await store.list(), [
      { name: "a<", sizeBytes: 5 },
      { name: "bb", sizeBytes: 2 },
      { name: "ccc", sizeBytes: 3 },
    ]);
    assert.match(requests[1]!, /continuation-token=1%2F2%3D/);
    const strange = await serve(context, (_request, response) => {
      response.end("<ListBucketResult><Contents><Key>other</Key></Contents></ListBucketResult>");
    });
    await assert.rejects(strange.store.list(), failsWith("Damaged", /list of objects/));
    const huge = await serve(context, (_request, response) => {
      response.end(Buffer.alloc(9 * 1024 * 1024));
    });
    await assert.rejects(huge.store.list(), failsWith("Damaged", /too large/));
  });

  test("a read that breaks goes on where it was, of the same object only", async (context) => {
    const bytes = Buffer.alloc(300_000, "abcdefg");
    let breaks = 2;
    let isHonest = true;
    const { store, requests } = await serve(context, (request, response) => {
      const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
      const rest = isHonest ? bytes.subarray(from) : bytes;
      response.writeHead(from > 0 && isHonest ? 206 : 200, {
        "content-length": rest.length,
        etag: '"tag"',
        "x-amz-meta-sha256": createHash("sha256").update(bytes).digest("hex"),
      });
      if (from > 0) assert.equal(request.headers["if-match"], '"tag"');
      if (breaks-- > 0) response.write(rest.subarray(0, 100_000), () => response.destroy());
      else response.end(rest);
    });
    assert.ok((await read(store, "one")).equals(bytes));
    assert.equal(requests.length, 3);
    breaks = 1;
    isHonest = false;
    await assert.rejects(read(store, "one"), failsWith("Refused", /cannot go on/));
  });

  test("an object that is not what was uploaded is damaged, one that is not there missing", async (context) => {
    const { store } = await serve(context, (request, response) => {
      if (request.url?.endsWith("none") === true) {
        response.writeHead(404);
        response.end("<Error><Code>NoSuchKey</Code></Error>");
        return;
      }
      response.writeHead(200, { "x-amz-meta-sha256": "00", "content-length": 3 });
      response.end("abc");
    });
    await assert.rejects(read(store, "one"), failsWith("Damaged", /not what was uploaded/));
    await assert.rejects(read(store, "none"), failsWith("Missing", /NoSuchKey/));
  });

  test("a large object is uploaded in parts, with their hashes and the lock", async (context) => {
    const parts: number[] = [];
    let failures = 1;
    let completed = "";
    let headers: IncomingMessage["headers"] = {};
    const { store, requests } = await serve(
      context,
      (request, response, body) => {
        const url = new URL(request.url ?? "", "http://x");
        if (url.searchParams.has("uploads")) {
          headers = request.headers;
          response.end("<R><UploadId>id/1</UploadId></R>");
        } else if (request.method === "PUT") {
          const hash = createHash("sha256").update(body);
          assert.equal(request.headers["x-amz-checksum-sha256"], hash.digest("base64"));
          if (failures-- > 0) {
            response.destroy();
            return;
          }
          parts.push(body.length);
          response.writeHead(200, { etag: `"${parts.length}"` });
          response.end();
        } else {
          completed = body.toString();
          response.end("<CompleteMultipartUploadResult/>");
        }
      },
      { lock: { mode: "COMPLIANCE", ms: 3_600_000 } },
    );
    const size = 2 * PART_BYTES + 5;
    await store.put("big", size, async function* () {
      for (let at = 0; at < size; at += 5_000_000)
        yield Buffer.alloc(Math.min(5_000_000, size - at));
    });
    assert.deepEqual(parts, [PART_BYTES, PART_BYTES, 5]);
    assert.equal(requests.length, 6);
    assert.equal(headers["x-amz-object-lock-mode"], "COMPLIANCE");
    assert.match(String(headers["x-amz-object-lock-retain-until-date"]), /^20\d\d-.*Z$/);
    assert.equal(headers["x-amz-checksum-algorithm"], "SHA256");
    assert.match(completed, /<PartNumber>3<\/PartNumber><ETag>&#34;3&#34;<\/ETag><ChecksumSHA256>/);
  });

  test("an upload that fails at its end is aborted", async (context) => {
    const { store, requests } = await serve(context, (request, response) => {
      const isEnd = request.method === "POST" && request.url?.includes("uploadId") === true;
      if (request.url?.includes("uploads") === true) response.end("<UploadId>7</UploadId>");
      else if (isEnd) response.end("<Error><Code>InternalError</Code></Error>");
      else response.end();
    });
    const size = PART_BYTES + 1;
    await assert.rejects(
      store.put("big", size, contentOf(new Uint8Array(size))),
      failsWith("Unavailable", /InternalError/),
    );
    assert.match(requests.at(-1)!, /^DELETE .*uploadId=7/);
  });
});
