/** The clients of ./dev bench clients: how each makes a call, and how each opens watches. */
import { connect as connectHttp2 } from "node:http2";
import { credentials, Client as GrpcClient } from "@grpc/grpc-js";
import { connect, getRequest, putRequest } from "@quorate/client";
import { Etcd3 as OurEtcd3 } from "@quorate/client/etcd3";
import { nodeClock } from "@quorate/host/node";
import { KVService, PutRequest, RangeRequest } from "@quorate/proto";
import { Channel } from "@quorate/rpc/client";
import { Etcd3 } from "etcd3";

const KEY = "bench/clients/key";
const VALUE = "x".repeat(256);

type Operation = "put" | "get";
type Call = () => Promise<unknown>;

export interface ClientFigures {
  readonly perSecond: number;
  readonly cpuMicros: number;
  /** Memory of the client for each of its watches: of live objects, and of the process. */
  readonly watchHeapBytes: number;
  readonly watchBytes: number;
}

interface Caller {
  /** Makes the calls of one operation at an endpoint. */
  open(endpoint: string, operation: Operation): Promise<Call> | Call;
  /** Opens so many watches; resolves when all are confirmed. */
  openWatches?(endpoint: string, number: number): Promise<void>;
}

/** A request as it is on the wire, behind its gRPC prefix too. */
function encoded(operation: Operation): { path: string; request: Buffer; framed: Buffer } {
  const { Put, Range } = KVService.methods;
  const request = Buffer.from(
    operation === "put"
      ? PutRequest.encode(putRequest(KEY, VALUE))
      : RangeRequest.encode(getRequest(KEY)),
  );
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(request.length, 1);
  const { path } = operation === "put" ? Put : Range;
  return { path, request, framed: Buffer.concat([prefix, request]) };
}

/** Watches are opened in tens, so that no client waits for all at once. */
async function inTens(number: number, open: (index: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < number; from += 10)
    await Promise.all(Array.from({ length: 10 }, (_, i) => open(from + i)));
}

function etcd3(client: Pick<Etcd3, "put" | "get">, operation: Operation): Call {
  return operation === "put"
    ? () => client.put(KEY).value(VALUE).exec()
    : () => client.get(KEY).string();
}

export const CALLERS = {
  "npm etcd3": {
    open: (endpoint, operation) => etcd3(new Etcd3({ hosts: endpoint }), operation),
    openWatches(endpoint, number) {
      const client = new Etcd3({ hosts: endpoint });
      return inTens(number, (i) => client.watch().key(`w${i}`).create());
    },
  },
  "our etcd3": {
    open(endpoint, operation) {
      const client = new OurEtcd3({ hosts: endpoint }) as unknown as Etcd3;
      return etcd3(client, operation);
    },
    openWatches(endpoint, number) {
      const client = new OurEtcd3({ hosts: endpoint });
      return inTens(number, (i) => client.watch().key(`w${i}`).create());
    },
  },
  ours: {
    open(endpoint, operation) {
      const client = connect({ endpoints: [endpoint] });
      return operation === "put" ? () => client.put(KEY, VALUE) : () => client.get(KEY);
    },
    openWatches(endpoint, number) {
      const client = connect({ endpoints: [endpoint] });
      const open = (i: number) =>
        new Promise<unknown>((resolve, reject) => {
          const watch = client.watch(`w${i}`, { onCreated: resolve });
          void (async () => {
            for await (const _ of watch);
          })().catch(reject);
        });
      return inTens(number, open);
    },
  },
  "grpc-js": {
    open(endpoint, operation) {
      const client = new GrpcClient(new URL(endpoint).host, credentials.createInsecure());
      const { path, request } = encoded(operation);
      const same = (bytes: Buffer): Buffer => bytes;
      return () =>
        new Promise((resolve, reject) => {
          client.makeUnaryRequest(path, same, same, request, (error, response) =>
            error === null ? resolve(response) : reject(error),
          );
        });
    },
  },
  "node:http2": {
    open(endpoint, operation) {
      const session = connectHttp2(endpoint);
      const { path, framed } = encoded(operation);
      const headers = {
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
        te: "trailers",
      };
      return () =>
        new Promise((resolve, reject) => {
          const stream = session.request(headers);
          const pieces: Buffer[] = [];
          stream.on("data", (piece: Buffer) => pieces.push(piece));
          stream.on("trailers", (trailers) => {
            if (trailers["grpc-status"] === "0") resolve(Buffer.concat(pieces).subarray(5));
            else reject(new Error(String(trailers["grpc-message"])));
          });
          stream.on("error", reject);
          stream.end(framed);
        });
    },
  },
  "our engine": {
    async open(endpoint, operation) {
      const address = new URL(endpoint).host;
      const options = { endpoint, address, tls: undefined, dialTimeoutMs: 5000 };
      const connection = await new Channel(options, nodeClock).connect();
      const { path, request } = encoded(operation);
      const start = { path, metadata: [], timeoutMs: 5000 };
      return () =>
        new Promise((resolve, reject) => {
          let response: Uint8Array | undefined;
          const call = connection.call(start, {
            message: (bytes) => {
              response = bytes;
            },
            ended: ({ code, message }) =>
              code === 0 ? resolve(response) : reject(new Error(message)),
          });
          if (call === undefined) reject(new Error("the connection takes no more calls"));
          else call.send(request, true);
        });
    },
  },
} as const satisfies Readonly<Record<string, Caller>>;

export type CallerName = keyof typeof CALLERS;

/** Those that have watches. */
export const WATCHING: readonly CallerName[] = ["npm etcd3", "our etcd3", "ours"];

/** The figures of one client in this process. */
export async function runCaller(
  name: CallerName,
  endpoint: string,
  {
    operation,
    number,
    seconds,
  }: { operation: Operation | "watch"; number: number; seconds: number },
): Promise<ClientFigures> {
  const caller: Caller = CALLERS[name];
  if (operation === "watch") return memory(caller);
  const call = await caller.open(endpoint, operation);
  await call();
  let done = 0;
  let isOver = false;
  const one = async (): Promise<void> => {
    while (!isOver) {
      await call();
      done++;
    }
  };
  const all = Promise.all(Array.from({ length: number }, one));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const [before, cpu, atMs] = [done, process.cpuUsage(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const { user, system } = process.cpuUsage(cpu);
  const calls = done - before;
  const perSecond = (calls / (performance.now() - atMs)) * 1000;
  isOver = true;
  await all;
  return { perSecond, cpuMicros: (user + system) / calls, watchHeapBytes: 0, watchBytes: 0 };

  async function memory({ openWatches }: Caller): Promise<ClientFigures> {
    if (openWatches === undefined) throw new Error(`${name} has no watches`);
    // What only the first ones need.
    await openWatches(endpoint, 10);
    const held = (): { readonly heap: number; readonly resident: number } => {
      (globalThis as { gc?: () => void }).gc?.();
      const { heapUsed, external, rss } = process.memoryUsage();
      return { heap: heapUsed + external, resident: rss };
    };
    const base = held();
    await openWatches(endpoint, number);
    const { heap, resident } = held();
    return {
      perSecond: 0,
      cpuMicros: 0,
      watchHeapBytes: (heap - base.heap) / number,
      watchBytes: (resident - base.resident) / number,
    };
  }
}
