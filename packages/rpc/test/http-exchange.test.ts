/** The contract of HttpExchange over HTTP/1.1 and HTTP/2, plain and with TLS, and on the fake. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientRequest as Http1Request, type IncomingMessage, request } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { request as secureRequest } from "node:https";
import type { Duplex } from "node:stream";
import { type HttpExchangeHandler, silentLogger } from "@quorate/host";
import {
  type ClientRequest,
  type ExchangesUnderTest,
  httpExchangeContract,
  ManualClock,
  MemoryExchange,
} from "@quorate/host/testing";
import { EngineServer } from "@quorate/rpc/node";
import { makeAuthority, makeLocalCertificate } from "../../../test/support/certs.ts";

const HOLD_BUDGET_BYTES = 100_000;
const CA = makeAuthority();
const SERVER = makeLocalCertificate(CA, "server");
const TLS = { ca: CA.certPem, servername: "localhost" };

interface Handlers {
  next: HttpExchangeHandler;
}

async function startServer(secure: boolean) {
  const handlers: Handlers = { next: () => assert.fail("no request is expected") };
  const clock = new ManualClock();
  const server = new EngineServer(
    {
      listen: [{ host: "127.0.0.1", port: 0, secure }],
      tls: secure ? { certPem: SERVER.certPem, keyPem: SERVER.keyPem } : undefined,
      limits: { maxHeldBytes: HOLD_BUDGET_BYTES },
    },
    {
      services: { unary: new Map(), stream: new Map() },
      http: (exchange) => handlers.next(exchange),
      clock,
      logger: silentLogger,
    },
  );
  const [bound] = await server.listen();
  const close = async () => {
    const closed = server.close(0);
    clock.advance(1);
    await closed;
  };
  return { handlers, port: bound.port ?? 0, close };
}

/** Some turns of the event loop in which nothing is expected. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
}

type Received = Awaited<ReturnType<ClientRequest["head"]>>;

/** What a client of Node has received. */
class Receiver {
  readonly #head = Promise.withResolvers<Received>();
  readonly #outcome = Promise.withResolvers<"ended" | "aborted">();
  #text = "";
  #waiting: (() => void)[] = [];

  begin(status: number, headers: object): void {
    const pairs = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
    this.#head.resolve({ status, headers: new Map(pairs) });
  }

  chunk(chunk: Buffer): void {
    this.#text += chunk.toString();
    for (const look of this.#waiting.splice(0)) look();
  }

  over(outcome: "ended" | "aborted"): void {
    this.#outcome.resolve(outcome);
  }

  readonly head = () => this.#head.promise;
  readonly outcome = () => this.#outcome.promise;
  readonly body = (sizeBytes: number) =>
    new Promise<string>((resolve) => {
      const look = () => {
        if (this.#text.length >= sizeBytes) resolve(this.#text);
        else this.#waiting.push(look);
      };
      look();
    });
}

async function overHttp1(secure: boolean): Promise<ExchangesUnderTest> {
  const { handlers, port, close } = await startServer(secure);
  const open: Http1Request[] = [];
  return {
    holdBudgetBytes: HOLD_BUDGET_BYTES,
    async request({ method, path, headers }, handler) {
      handlers.next = handler;
      const options = { host: "127.0.0.1", port, method, path, headers: { ...headers } };
      const sent = secure ? secureRequest({ ...options, ...TLS }) : request(options);
      open.push(sent);
      const receiver = new Receiver();
      sent.on("error", () => receiver.over("aborted"));
      sent.on("response", (response: IncomingMessage) => {
        receiver.begin(response.statusCode ?? 0, response.headers);
        response.on("data", (chunk: Buffer) => receiver.chunk(chunk));
        response.on("end", () => receiver.over("ended"));
        response.on("error", () => receiver.over("aborted"));
      });
      sent.flushHeaders();
      return {
        send: (text) => void sent.write(text),
        end: () => void sent.end(),
        leave: () => void sent.destroy(),
        head: receiver.head,
        body: receiver.body,
        outcome: receiver.outcome,
      };
    },
    settled,
    async close() {
      for (const sent of open) sent.destroy();
      await close();
    },
  };
}

async function overHttp2(secure: boolean): Promise<ExchangesUnderTest> {
  const { handlers, port, close } = await startServer(secure);
  const scheme = secure ? "https" : "http";
  const session: ClientHttp2Session = connect(`${scheme}://127.0.0.1:${port}`, secure ? TLS : {});
  await once(session, "connect");
  return {
    holdBudgetBytes: HOLD_BUDGET_BYTES,
    async request({ method, path, headers }, handler) {
      handlers.next = handler;
      const stream = session.request(
        { ":method": method, ":path": path, ...headers },
        { endStream: false },
      );
      const receiver = new Receiver();
      stream.on("response", (fields) => receiver.begin(Number(fields[":status"]), fields));
      stream.on("data", (chunk: Buffer) => receiver.chunk(chunk));
      stream.on("error", () => receiver.over("aborted"));
      stream.on("close", () => receiver.over(stream.rstCode === 0 ? "ended" : "aborted"));
      return {
        send: (text) => void (stream as Duplex).write(text),
        end: () => void stream.end(),
        leave: () => void stream.destroy(new Error("the client leaves")),
        head: receiver.head,
        body: receiver.body,
        outcome: receiver.outcome,
      };
    },
    settled,
    async close() {
      session.destroy();
      await close();
    },
  };
}

async function onFake(): Promise<ExchangesUnderTest> {
  return {
    holdBudgetBytes: HOLD_BUDGET_BYTES,
    async request({ method, path, headers = {} }, handler) {
      const [target, ...query] = path.split("?");
      const fields = new Map(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
      );
      const exchange = new MemoryExchange({
        method,
        path: target,
        query: query.join("?"),
        headers: fields,
      });
      exchange.holdBudgetBytes = HOLD_BUDGET_BYTES;
      exchange.serve(handler, [], true);
      const answered = new Map<string, string>();
      return {
        send: (text) => exchange.receive(Buffer.from(text)),
        end: () => exchange.receive(undefined),
        leave: () => exchange.leave(),
        async head() {
          for (const [name, value] of Object.entries(exchange.headers))
            answered.set(name.toLowerCase(), value);
          return { status: exchange.status ?? 0, headers: answered };
        },
        body: async () => exchange.text,
        outcome: async () => (exchange.state === "ended" ? "ended" : "aborted"),
      };
    },
    settled: async () => {},
    close: async () => {},
  };
}

httpExchangeContract("the fake", onFake);
for (const secure of [false, true]) {
  const layer = secure ? "TLS" : "plain";
  httpExchangeContract(`HTTP/1.1, ${layer}`, () => overHttp1(secure));
  httpExchangeContract(`HTTP/2, ${layer}`, () => overHttp2(secure));
}
