/**
 * Loads on streams.
 *
 * Keep-alive: each client has a lease and a stream of its own, and renews the lease when the last
 * renewal was answered.
 *
 * Watch fan-out: many watches of one prefix, a few writers. A writer puts the next change when the
 * last one has reached every watch, so the delivery is measured and no backlog can grow.
 */
import {
  KVService,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseService,
  PutRequest,
  Reader,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import { TestClient } from "../test/support/client.ts";
import type { Target } from "./calls.ts";
import { Connection, type Template } from "./connection.ts";
import { keyBytes, keyOf } from "./keys.ts";
import type { Load, LoadEvents } from "./load.ts";

const leaseTtlS = 600;

export class KeepAliveLoad implements Load {
  readonly clients: number;
  readonly unitsPerCall = 1;
  readonly #target: Target;
  readonly #connectionCount: number;
  readonly #connections: Connection[] = [];
  readonly #streams: number[] = [];
  readonly #requests: Uint8Array[] = [];

  constructor(target: Target, clients: number, connections: number) {
    this.#target = target;
    this.clients = clients;
    this.#connectionCount = connections;
  }

  async open(events: LoadEvents): Promise<void> {
    const { urls, identity } = this.#target;
    const granting = new TestClient(new URL(urls[0]).host, identity);
    try {
      const grants = Array.from({ length: this.clients }, () =>
        granting.call(LeaseService.methods.LeaseGrant, { TTL: leaseTtlS }, 30_000),
      );
      for (const { ID } of await Promise.all(grants))
        this.#requests.push(LeaseKeepAliveRequest.encode({ ID }).slice());
    } finally {
      granting.close();
    }
    // A lease that is not known is answered without a time to live.
    const streamed = (client: number, message: Uint8Array): void =>
      events.done(client, LeaseKeepAliveResponse.decode(message).TTL > 0);
    const options = {
      paths: [LeaseService.methods.LeaseKeepAlive.path],
      identity,
      done: () => {},
      streamed,
      failed: events.failed,
    };
    for (let index = 0; index < this.#connectionCount; index++) {
      this.#connections.push(await Connection.open({ ...options, url: urls[index % urls.length] }));
    }
    for (let client = 0; client < this.clients; client++)
      this.#streams.push(this.#of(client).openStream(client, 0));
    this.flush();
  }

  start(client: number): void {
    this.#of(client).send(this.#streams[client], this.#requests[client]);
  }

  flush(): void {
    for (const connection of this.#connections) connection.flush();
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  #of(client: number): Connection {
    return this.#connections[client % this.#connections.length];
  }
}

export interface FanOutOptions {
  readonly watches: number;
  readonly connections: number;
  readonly writers: number;
  readonly value: Buffer;
}

const watchedPrefix = "w";

export class FanOutLoad implements Load {
  readonly clients: number;
  readonly unitsPerCall: number;
  /** Puts answered; the store's revision must have gone up by as much. */
  revisions = 0;
  readonly #target: Target;
  readonly #options: FanOutOptions;
  readonly #connections: Connection[] = [];
  readonly #putting: Connection[] = [];
  readonly #template: Template;
  readonly #keys: readonly Buffer[];
  /** Watches that a writer's change has not reached yet, and 1 for the answer of its put. */
  readonly #missing: Uint32Array;

  constructor(target: Target, options: FanOutOptions) {
    this.#target = target;
    this.#options = options;
    this.clients = options.writers;
    this.unitsPerCall = options.watches;
    this.#keys = Array.from({ length: options.writers }, (_, writer) =>
      keyOf(watchedPrefix, writer),
    );
    this.#missing = new Uint32Array(options.writers);
    this.#template = {
      path: 0,
      message: PutRequest.encode({ key: Buffer.alloc(keyBytes), value: options.value }).slice(),
      patchAt: [2],
    };
  }

  async open(events: LoadEvents): Promise<void> {
    const { watches, connections, writers } = this.#options;
    const { urls, identity } = this.#target;
    const { promise: allStand, resolve } = Promise.withResolvers<void>();
    let created = 0;
    const arrived = (writer: number): void => {
      if (--this.#missing[writer] === 0) events.done(writer, true);
    };
    const streamed = (_slot: number, message: Uint8Array): void =>
      eachField(message, 0, message.length, (field, start, end) => {
        if (field === createdField && message[start] === 1 && ++created === watches) resolve();
        else if (field === canceledField && message[start] === 1)
          events.failed(new Error("a watch was cancelled"));
        else if (field === eventsField) arrived(writerOf(message, start, end));
      });
    const done = (writer: number, ok: boolean): void => {
      if (!ok) events.failed(new Error("a put was refused"));
      this.revisions++;
      arrived(writer);
    };
    const options = { identity, failed: events.failed, done, streamed };
    const create = WatchRequest.encode({
      requestUnion: {
        case: "createRequest",
        value: WatchCreateRequest.create({
          key: Buffer.from(watchedPrefix),
          rangeEnd: Buffer.from("x"),
        }),
      },
    }).slice();
    for (let index = 0; index < connections; index++) {
      const connection = await Connection.open({
        ...options,
        url: urls[index % urls.length],
        paths: [WatchService.methods.Watch.path],
      });
      this.#connections.push(connection);
      const stream = connection.openStream(index, 0);
      for (let watch = index; watch < watches; watch += connections)
        connection.send(stream, create);
      connection.flush();
    }
    for (let writer = 0; writer < writers; writer++) {
      const url = urls[writer % urls.length];
      this.#putting.push(
        await Connection.open({ ...options, url, paths: [KVService.methods.Put.path] }),
      );
    }
    await allStand;
  }

  start(writer: number): void {
    this.#missing[writer] = this.#options.watches + 1;
    this.#putting[writer].call(writer, this.#template, this.#keys[writer]);
    this.#putting[writer].flush();
  }

  flush(): void {}

  close(): void {
    for (const connection of [...this.#connections, ...this.#putting]) connection.close();
  }
}

/** Fields of WatchResponse. */
const createdField = 3;
const canceledField = 4;
const eventsField = 11;
/** Of Event, and of KeyValue. */
const kvField = 2;
const keyField = 1;

/** The writer whose key an event (its bytes from `start` to `end`) is about. */
function writerOf(bytes: Uint8Array, start: number, end: number): number {
  let writer = 0;
  eachField(bytes, start, end, (field, kvStart, kvEnd) => {
    if (field !== kvField) return;
    eachField(bytes, kvStart, kvEnd, (inner, keyStart, keyEnd) => {
      if (inner !== keyField) return;
      for (let at = keyStart + 1; at < keyEnd; at++) writer = writer * 10 + bytes[at] - 0x30;
    });
  });
  return writer;
}

/**
 * Visits the fields of an encoded message: number, and where the content lies (a varint's own
 * bytes, or what has a length).
 */
export function eachField(
  bytes: Uint8Array,
  start: number,
  end: number,
  visit: (field: number, start: number, end: number) => void,
): void {
  const reader = new Reader(bytes);
  reader.reset(bytes, start, end);
  while (reader.pos < end) {
    const tag = reader.tag();
    let at = reader.pos;
    if ((tag & 7) === 2) at = reader.content();
    else reader.skip(tag, {});
    visit(tag >>> 3, at, reader.pos);
  }
}
