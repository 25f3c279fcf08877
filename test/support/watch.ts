/** A raw watch stream over grpc-js: sends requests, keeps responses, waits for them. */
import * as grpc from "@grpc/grpc-js";
import {
  Event,
  KeyValue,
  type WatchCreateRequest,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { openChannel } from "./client.ts";

/** A limit for machines that have much else to do; nothing takes as long. */
const limitMs = 120_000;

export class WatchClient {
  readonly responses: WatchResponse[] = [];
  /** Called with each response instead of keeping it. */
  onResponse: ((response: WatchResponse) => void) | undefined;
  /** Called at the stream's end. */
  onEnd: ((status: grpc.StatusObject) => void) | undefined;
  /** How the stream ended. */
  status: grpc.StatusObject | undefined;
  readonly #channel: grpc.Client;
  readonly #stream: grpc.ClientDuplexStream<Buffer, WatchResponse>;
  #arrived: () => void = () => {};
  #taken = 0;

  /** `address` is host:port. */
  constructor(
    address: string,
    metadata: Readonly<Record<string, string>> = {},
    identity: ClientIdentity = {},
  ) {
    this.#channel = openChannel(address, identity);
    const sent = new grpc.Metadata();
    for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
    this.#stream = this.#channel.makeBidiStreamRequest(
      WatchService.methods.Watch.path,
      (bytes: Buffer) => bytes,
      (bytes) => WatchResponse.decode(bytes),
      sent,
    );
    this.#stream.on("data", (response: WatchResponse) => {
      if (this.onResponse !== undefined) {
        this.onResponse(response);
        return;
      }
      this.responses.push(response);
      this.#arrived();
    });
    this.#stream.on("status", (status) => {
      this.status = status;
      this.#arrived();
      this.onEnd?.(status);
    });
    this.#stream.on("error", () => {});
  }

  create(request: Partial<WatchCreateRequest>): void {
    this.#send({ requestUnion: { case: "createRequest", value: request as WatchCreateRequest } });
  }

  cancel(watchId: number): void {
    this.#send({ requestUnion: { case: "cancelRequest", value: { watchId } } });
  }

  progress(): void {
    this.#send({ requestUnion: { case: "progressRequest", value: {} } });
  }

  #send(request: WatchRequest): void {
    this.#stream.write(Buffer.from(WatchRequest.encode(request)));
  }

  /** Stops and restarts reading, so that the server finds a slow client. */
  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  /** Resolves when `done`, looking after each response; fails after two minutes. */
  async until(done: () => boolean): Promise<void> {
    const late = AbortSignal.timeout(limitMs);
    while (!done()) {
      await new Promise<void>((resolve, reject) => {
        this.#arrived = resolve;
        late.onabort = () =>
          reject(
            new Error(
              `waited in vain for ${done}; came: ${this.responses.map(describeResponse).join("\n")}`,
            ),
          );
      });
    }
  }

  /** The next `count` responses. */
  async take(count: number): Promise<WatchResponse[]> {
    const end = this.#taken + count;
    await this.until(() => this.responses.length >= end);
    const taken = this.responses.slice(this.#taken, end);
    this.#taken = end;
    return taken;
  }

  close(): void {
    this.#stream.cancel();
    this.#channel.close();
  }
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

function describeKv(bytes: Uint8Array): string {
  const kv = KeyValue.decode(bytes);
  return `${text(kv.key)}=${text(kv.value)} c${kv.createRevision} m${kv.modRevision} v${kv.version} l${kv.lease}`;
}

/** An encoded event as text. */
export function describeEvent(bytes: Uint8Array): string {
  const { type, kv, prevKv } = Event.decode(bytes);
  return `${type === 0 ? "PUT" : "DELETE"} ${describeKv(kv!)}${prevKv === undefined ? "" : ` before: ${describeKv(prevKv)}`}`;
}

/** A response as text, without ids and term. */
export function describeResponse(response: WatchResponse): string {
  const { header, watchId, created, canceled, compactRevision, cancelReason, fragment, events } =
    response;
  const flags = [created && "created", canceled && "canceled", fragment && "fragment"]
    .filter(Boolean)
    .join(" ");
  const compacted = compactRevision === 0 ? "" : ` compact ${compactRevision}`;
  return `rev ${header?.revision} id ${watchId} ${flags}${compacted} "${cancelReason}" [${events.map(describeEvent).join("; ")}]`;
}
