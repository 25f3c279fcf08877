/**
 * Webhooks that answer slowly, hugely or wrongly, over real TLS connections: the request gets an
 * error in bounded time and memory, and the server goes on.
 * @slow
 */

import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { Turns } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import type { ApiError } from "@quorate/kube-storage";
import { fromUtf8 } from "@quorate/proto";
import { createAuthority } from "../../../../scripts/certs.ts";
import { MAX_RESPONSE_PIECES } from "../../node/bounded-body.ts";
import { HttpsWebhookCaller } from "../../node/webhook-caller.ts";
import { MAX_WEBHOOK_RESPONSE_BYTES } from "../../src/admission/webhook-caller.ts";
import {
  decodeReview,
  MAX_REFUSAL_CAUSES,
  MAX_REFUSAL_CHARS,
} from "../../src/admission/webhook-review.ts";
import {
  MAX_CHARS_PER_CALL,
  WebhookConverter,
} from "../../src/crd/conversion/webhook-converter.ts";
import { ApiWorld, CONFIG_MAPS } from "../support/api-world.ts";

const JSON_TYPE = { "content-type": "application/json" };
const DEEP = 300_000;
/** No text can be made of it. */
const NO_TEXT = { toString: 1, valueOf: 1 };

type Answer = (response: ServerResponse, uid: string) => void;

const ca = await createAuthority("webhooks");
const leaf = await ca.issue({ commonName: "hook", hosts: ["127.0.0.1"], usage: "server" });
const caBundle = Buffer.from(ca.caPem).toString("base64");
const sockets = new Set<Socket>();
let answer: Answer = (response) => response.end();
const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on("error", () => {});
  response.on("error", () => {});
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { request: sent } = JSON.parse(Buffer.concat(chunks).toString());
    answer(response, sent.uid);
  });
});
server.on("connection", (socket: Socket) => {
  sockets.add(socket);
  socket.on("error", () => {});
  socket.on("close", () => sockets.delete(socket));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
const caller = new HttpsWebhookCaller({ services: new Map() });
const clientConfig = { url, caBundle };
after(async () => {
  await caller.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

/** Answers that are no HTTP response, or none of a webhook, whatever the protocol is. */
const BROKEN: readonly (readonly [name: string, answer: Answer, error: RegExp])[] = [
  ["nothing", () => {}, /context deadline exceeded/],
  [
    "a byte now and then",
    (response) => {
      const timer = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(timer));
    },
    /context deadline exceeded/,
  ],
  [
    "chunks without end",
    (response) => {
      const chunk = Buffer.alloc(64 * 1024, " ");
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", more);
      more();
    },
    /the response has more than 8388608 bytes/,
  ],
  [
    "chunks of one byte",
    (response) => {
      response.socket!.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
      response.socket!.write("1\r\n \r\n".repeat(2 * MAX_RESPONSE_PIECES));
    },
    /the response has more than 16384 pieces/,
  ],
  [
    "the announcement of too many bytes",
    (response) => {
      response.writeHead(200, { "content-length": MAX_WEBHOOK_RESPONSE_BYTES + 1 });
      response.flushHeaders();
    },
    /the response has more than 8388608 bytes/,
  ],
  [
    "half an answer",
    (response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("{", () => response.socket!.destroy());
    },
    /EOF|closed|aborted/,
  ],
  [
    "headers without end",
    (response) => {
      response.socket!.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(300_000)}`);
    },
    /[Hh]eaders? [Oo]verflow/,
  ],
  ["no HTTP", (response) => response.socket!.end("SSH-2.0-x\r\n\r\n"), /failed|Expected HTTP|EOF/],
  [
    "a redirection",
    (response) => response.writeHead(307, { location: url }).end(),
    /rejected our request for an unknown reason|status 307/,
  ],
  ["an error with much text", (r) => r.writeHead(500).end("x".repeat(4_000_000)), /x{100}/],
  ["no JSON", (response) => response.end("<html>"), /no JSON object|invalid character/],
  ["nothing in the body", (response) => response.end(), /no JSON object|unexpected end/],
  ["brackets", (response) => response.end("[".repeat(DEEP)), /no JSON object|max depth/],
  ["fields", (response) => response.end('{"a":'.repeat(DEEP)), /no JSON object|max depth/],
  ["a number", (response) => response.end("1".repeat(1_000_000)), /no JSON object|no response|got/],
];

function review(response: Record<string, unknown>, more: object = {}): string {
  return JSON.stringify({
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    response,
    ...more,
  });
}

function patchOf(operations: unknown): Record<string, unknown> {
  const text = typeof operations === "string" ? operations : JSON.stringify(operations);
  return { patchType: "JSONPatch", patch: Buffer.from(text).toString("base64") };
}

const DOUBLING = [
  { op: "add", path: "/x", value: { a: "y".repeat(1000) } },
  ...Array.from({ length: 60 }, (_, i) => ({ op: "copy", from: "/x", path: `/x/b${i}` })),
];
const INSERTIONS = [
  { op: "add", path: "/metadata/finalizers", value: Array.from({ length: 5000 }, () => "a.b/c") },
  ...Array.from({ length: 9000 }, () => ({
    op: "add",
    path: "/metadata/finalizers/0",
    value: "a.b/c",
  })),
];

/** Answers that are reviews, in part. */
const WRONG: readonly (readonly [
  name: string,
  response: Record<string, unknown>,
  status: number,
  message: RegExp,
  more?: object,
])[] = [
  ["another uid", { uid: "x", allowed: true }, 500, /expected response.uid/],
  ["a uid that is no text", { uid: NO_TEXT, allowed: true }, 500, /expected response.uid/],
  ["another kind", { allowed: true }, 500, /got v2, Kind=Pod/, { kind: "Pod", apiVersion: "v2" }],
  [
    "a kind that is no text",
    { allowed: true },
    500,
    /got , Kind=/,
    { kind: NO_TEXT, apiVersion: [NO_TEXT] },
  ],
  [
    "a code that is no number",
    { status: { code: "abc" } },
    500,
    /status.code must be of type int32/,
  ],
  ["a code without response", { status: { code: 1e9 } }, 599, /denied the request/],
  ["a code of success", { status: { code: 200 } }, 400, /denied the request/],
  ["a status that is no object", { status: "no" }, 500, /status must be of type object/],
  ["a message that is no text", { status: { message: NO_TEXT } }, 500, /status.message must be/],
  [
    "a header",
    { status: { details: { retryAfterSeconds: "1\r\nx: y" } } },
    500,
    /retryAfterSeconds must be of type int32/,
  ],
  ["causes", { status: { details: { causes: [[NO_TEXT]] } } }, 500, /causes\[0\] must be/],
  ["a patch that is no JSON", { allowed: true, ...patchOf("{") }, 500, /undecodable patch/],
  ["a patch that is no list", { allowed: true, ...patchOf({}) }, 500, /undecodable patch/],
  ["a deep patch", { allowed: true, ...patchOf("[".repeat(DEEP)) }, 500, /undecodable patch/],
  [
    "operations of other types",
    { allowed: true, ...patchOf([[], 5]) },
    500,
    /error decoding patch/,
  ],
  [
    "a patch type that is no text",
    { allowed: true, patchType: NO_TEXT, patch: "e30=" },
    500,
    /type/,
  ],
  ["doubling", { allowed: true, ...patchOf(DOUBLING) }, 500, /rejected our request/],
  ["insertions", { allowed: true, ...patchOf(INSERTIONS) }, 500, /rejected our request/],
  [
    "an object of another kind",
    { allowed: true, ...patchOf([{ op: "replace", path: "", value: { kind: "Pod" } }]) },
    422,
    /name or generateName is required/,
  ],
  [
    "metadata of another type",
    { allowed: true, ...patchOf([{ op: "replace", path: "/metadata", value: 5 }]) },
    500,
    /./,
  ],
];

describe("hostile webhooks", () => {
  let world: ApiWorld;
  const ends: (() => Promise<void>)[] = [];
  before(async () => {
    const more = { webhooks: caller };
    world = await ApiWorld.open({ after: (end) => void ends.push(end) }, {}, undefined, more);
    await world.ok("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {
      method: "POST",
      headers: JSON_TYPE,
      body: {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "MutatingWebhookConfiguration",
        metadata: { name: "hooks" },
        webhooks: [
          {
            name: "hook.example.org",
            admissionReviewVersions: ["v1"],
            sideEffects: "None",
            clientConfig,
            failurePolicy: "Fail",
            timeoutSeconds: 2,
            rules: [
              {
                operations: ["CREATE"],
                apiGroups: [""],
                apiVersions: ["v1"],
                resources: ["configmaps"],
              },
            ],
          },
        ],
      },
    });
    answer = (response, uid) => response.end(review({ uid, allowed: true }));
    // The configuration counts once the informer has it.
    let isCalled = false;
    const good = answer;
    answer = (response, uid) => {
      isCalled = true;
      good(response, uid);
    };
    for (let i = 0; !isCalled && i < 1000; i++) {
      await send();
      if (!isCalled) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.ok(isCalled);
  });
  after(async () => {
    for (const end of ends) await end();
  });

  function send() {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" }, data: { a: "b" } };
    return world.request(`${CONFIG_MAPS}?dryRun=All`, { method: "POST", headers: JSON_TYPE, body });
  }

  async function isServing(): Promise<void> {
    answer = (response, uid) => response.end(review({ uid, allowed: true }));
    assert.equal((await send()).status, 201);
  }

  for (const [name, broken, message] of BROKEN)
    test(`an admission webhook answers with ${name}`, async () => {
      answer = broken;
      const { status, json } = await send();
      assert.deepEqual([status, json.reason], [500, "InternalError"]);
      assert.match(json.message, /failed calling webhook "hook.example.org"/);
      assert.match(json.message, message);
      assert.ok(json.message.length < 4096);
      await isServing();
    });

  for (const [name, response, status, message, more] of WRONG)
    test(`an admission webhook reviews with ${name}`, async () => {
      answer = (to, uid) => to.end(review({ uid, ...response }, more));
      const got = await send();
      assert.equal(got.status, status, got.text);
      assert.match(got.json.message, message);
      assert.equal(got.headers["x"], undefined);
      await isServing();
    });

  test("a refusal reaches its client with bounded texts and causes", async () => {
    const long = "x".repeat(2 * MAX_REFUSAL_CHARS);
    const causes = Array.from({ length: 2 * MAX_REFUSAL_CAUSES }, () => ({ message: "no" }));
    const details = { causes, retryAfterSeconds: 7, name: "n", other: "no" };
    answer = (to, uid) => {
      to.end(review({ uid, status: { code: 429, message: long, details } }));
    };
    const { status, json, headers } = await send();
    assert.deepEqual([status, headers["retry-after"]], [429, "7"]);
    assert.ok(json.message.length < MAX_REFUSAL_CHARS + 200);
    assert.equal(json.details.causes.length, MAX_REFUSAL_CAUSES);
    assert.deepEqual([json.details.name, json.details.other], ["n", undefined]);
  });

  test("a long response is read in slices", async () => {
    let turns = 0;
    const clock = {
      monotonicMs: () => 0,
      endOfTurn: (task: () => void) => {
        turns++;
        setImmediate(task);
      },
    };
    const items = Array.from({ length: 400_000 }, (_, i) => i);
    const operations = [{ op: "add", path: "/data/x", value: items }];
    const body = review({
      uid: "u",
      allowed: true,
      ...patchOf(operations),
      auditAnnotations: items,
    });
    await decodeReview(fromUtf8(body), "v1", "u", true, { turns: new Turns(clock) });
    assert.ok(turns >= 20, `${turns} turns`);
  });
});

describe("hostile conversion webhooks", () => {
  let uids = 0;
  const converter = new WebhookConverter(
    { config: clientConfig, reviewVersions: ["v1"] },
    {
      // The converter's own timeout is 30 s.
      caller: { call: (one) => caller.call({ ...one, timeoutMs: 2000 }) },
      clock: nodeClock,
      newUid: () => `uid-${uids++}`,
    },
  );
  const object = { apiVersion: "g/v1", kind: "K", metadata: { name: "a", uid: "u" } };

  async function failure(): Promise<ApiError> {
    try {
      await converter.convert([object], "g/v2");
    } catch (error) {
      return error as ApiError;
    }
    return assert.fail("it was converted");
  }

  for (const [name, broken, message] of BROKEN)
    test(`a conversion webhook answers with ${name}`, async () => {
      answer = broken;
      const { httpStatus, message: text } = await failure();
      assert.equal(httpStatus, 500, text);
      assert.match(text, /^conversion webhook for g\/v1, Kind=K failed: /);
      assert.match(text, message);
      assert.ok(text.length < 4096);
    });

  const good = { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview" };
  const made = { ...object, apiVersion: "g/v2" };
  const cases: readonly (readonly [string, object, RegExp])[] = [
    ["no kind", { kind: NO_TEXT, apiVersion: [NO_TEXT] }, /got , Kind=/],
    ["another uid", { response: { uid: NO_TEXT } }, /expected response.uid/],
    ["a result that is no text", { response: { result: { status: NO_TEXT } } }, /'' *, not|was ''/],
    ["a message that is no text", { response: { result: { message: [NO_TEXT] } } }, /was ''/],
    ["too few objects", { response: { convertedObjects: [] } }, /returned 0 objects, expected 1/],
    [
      "too many",
      { response: { convertedObjects: [made, made] } },
      /returned 2 objects, expected 1/,
    ],
    ["objects of another type", { response: { convertedObjects: { length: 1 } } }, /returned 0/],
    ["a text", { response: { convertedObjects: ["a"] } }, /it is no object/],
    ["another version", { response: { convertedObjects: [object] } }, /received g\/v1/],
    [
      "a version that is no text",
      { response: { convertedObjects: [{ ...made, apiVersion: NO_TEXT, kind: NO_TEXT }] } },
      /invalid groupVersion/,
    ],
    [
      "a kind that is no text",
      { response: { convertedObjects: [{ ...made, kind: NO_TEXT }] } },
      /invalid kind/,
    ],
    [
      "no metadata",
      { response: { convertedObjects: [{ ...made, metadata: 5 }] } },
      /missing metadata/,
    ],
    [
      "another name",
      { response: { convertedObjects: [{ ...made, metadata: { name: NO_TEXT, uid: "u" } }] } },
      /must have the same name/,
    ],
    [
      "labels that are no texts",
      {
        response: {
          convertedObjects: [{ ...made, metadata: { ...made.metadata, labels: { a: 1 } } }],
        },
      },
      /must be a string/,
    ],
  ];
  for (const [name, more, message] of cases)
    test(`a conversion webhook converts to ${name}`, async () => {
      answer = (to, uid) => {
        const { response = {} } = more as { response?: object };
        const own = { uid, result: { status: "Success" }, convertedObjects: [made], ...response };
        to.end(JSON.stringify({ ...good, ...more, response: own }));
      };
      const { httpStatus, message: text } = await failure();
      assert.deepEqual([httpStatus, message.test(text)], [500, true], text);
    });

  test("a call has a bounded length, unless one object is longer", async () => {
    const calls: number[] = [];
    answer = () => assert.fail("it is not called");
    const counting = new WebhookConverter(
      { config: clientConfig, reviewVersions: ["v1"] },
      {
        caller: {
          call: async ({ body }) => {
            const { request } = JSON.parse(Buffer.from(body).toString());
            calls.push(request.objects.length);
            const convertedObjects = request.objects.map((one: object) => ({
              ...one,
              apiVersion: request.desiredAPIVersion,
            }));
            const response = { uid: request.uid, result: { status: "Success" }, convertedObjects };
            return { status: 200, body: fromUtf8(JSON.stringify({ ...good, response })) };
          },
        },
        clock: nodeClock,
        newUid: () => "uid",
      },
    );
    const sized = (chars: number) => ({ ...object, spec: { text: "x".repeat(chars) } });
    const objects = [
      ...Array.from({ length: 5 }, () => sized(MAX_CHARS_PER_CALL / 2 - 500)),
      sized(2 * MAX_CHARS_PER_CALL),
      sized(10),
    ];
    const converted = await counting.convert(objects, "g/v2");
    assert.deepEqual(calls, [2, 2, 1, 1, 1]);
    assert.ok(converted.every((one) => one.apiVersion === "g/v2"));
  });
});
