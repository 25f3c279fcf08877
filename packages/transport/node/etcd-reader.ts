/**
 * One stream that this member dials, and reads messages of a member of etcd on. Dialled again and
 * again, until it is closed:
 *
 *     waiting --(time, a sign of life)--> dialling --(200)--> open --(lost, silent)--> waiting
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import { Backoff, type Timer } from "@quorate/host";
import { idToHex, type raftpb } from "@quorate/proto";
import { type EtcdStream, etcdDecoder } from "../src/etcd-frames.ts";
import { RareLog } from "../src/rare-log.ts";
import { DialError } from "./dial.ts";
import { etcdRequestHeaders, STREAM_PATH, speaksQuorate } from "./headers.ts";
import { requestPeer } from "./http1-request.ts";
import { peerFields, type Shared } from "./options.ts";
import { refusedBy, textOf } from "./request.ts";
import { MessageReader } from "./stream.ts";

/** What becomes of a stream. */
export interface EtcdReaderListener {
  /** @param tookMs from the request to the peer's consent */
  opened(tookMs: number): void;
  lost(): void;
  received(messages: readonly raftpb.Message[]): void;
  /** The peer is a member of Quorate; the reader is of no use. */
  speaksQuorate(): void;
}

interface Source {
  readonly id: bigint;
  readonly urls: readonly string[];
  readonly stream: EtcdStream;
}

export class EtcdReader {
  readonly #shared: Shared;
  readonly #source: Source;
  readonly #listener: EtcdReaderListener;
  readonly #backoff: Backoff;
  readonly #readLog: RareLog;
  #dialLog: RareLog;
  #urls: readonly string[];
  #picked = 0;
  #state: "waiting" | "dialling" | "open" | "closed" = "waiting";
  #request: ClientRequest | undefined;
  #retry: Timer | undefined;

  constructor(shared: Shared, source: Source, listener: EtcdReaderListener) {
    const { quickRetryMs, leastRetryMs, mostRetryMs } = shared.options;
    this.#shared = shared;
    this.#source = source;
    this.#urls = source.urls;
    this.#listener = listener;
    this.#readLog = new RareLog(shared.clock);
    this.#dialLog = new RareLog(shared.clock);
    const times = { quickMs: quickRetryMs, firstMs: leastRetryMs, mostMs: mostRetryMs };
    this.#backoff = new Backoff(
      times,
      shared.random.fork(`${idToHex(source.id)} ${source.stream}`),
    );
  }

  /** Dials now if it is waiting to. */
  wake(): void {
    if (this.#state !== "waiting") return;
    this.#retry?.cancel();
    this.#state = "dialling";
    this.#dial().catch((error: unknown) => this.#failed(error));
  }

  /** Goes on with other URLs; what is open stays until it is lost. */
  update(urls: readonly string[]): void {
    this.#urls = urls;
    this.#picked = 0;
    this.wake();
  }

  close(): void {
    this.#state = "closed";
    this.#retry?.cancel();
    this.#request?.destroy();
  }

  async #dial(): Promise<void> {
    const { clock, options } = this.#shared;
    const { id, stream } = this.#source;
    const url = this.#urls[this.#picked] ?? "";
    const startedMs = clock.monotonicMs();
    const asker = {
      tls: options.tls?.current,
      localAddress: options.localAddress,
      kept: undefined,
    };
    const request = requestPeer(asker, url, {
      method: "GET",
      path: `${STREAM_PATH}${stream}/${idToHex(options.selfId)}`,
      headers: etcdRequestHeaders(options, id),
    });
    this.#request = request;
    const timer = clock.after(options.dialTimeoutMs, () =>
      request.destroy(new DialError("Timeout", `dial ${url}: i/o timeout`)),
    );
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request.on("response", resolve);
        request.on("error", reject);
        request.end();
      });
      if (speaksQuorate(options, response.headers)) {
        request.destroy();
        this.#listener.speaksQuorate();
        return;
      }
      if (response.statusCode !== 200) {
        const text = await textOf(response);
        const { statusCode: status = 0, headers } = response;
        throw refusedBy(this.#shared, { status, headers, text });
      }
      this.#open(url, response, clock.monotonicMs() - startedMs);
    } finally {
      timer.cancel();
    }
  }

  #open(url: string, response: IncomingMessage, tookMs: number): void {
    const { clock, logger, options } = this.#shared;
    const { id, stream } = this.#source;
    if (this.#state === "closed") {
      response.destroy();
      return;
    }
    this.#state = "open";
    this.#dialLog = new RareLog(clock);
    this.#backoff.reset();
    logger.info("established TCP streaming connection with remote peer", {
      ...this.#fields(),
      url,
    });
    const ids = { from: id, to: options.selfId };
    const parts = {
      shared: this.#shared,
      rareLog: this.#readLog,
      connection: response,
      decoder: etcdDecoder(stream, ids, options.maxMessageBytes),
    };
    const reader = new MessageReader(parts, id, {
      received: (messages) => {
        if (this.#state === "open") this.#listener.received(messages);
      },
    });
    let hasCome = true;
    const silence = clock.every(options.pingTimeoutMs, () => {
      if (!hasCome) response.destroy();
      hasCome = false;
    });
    response.on("data", (chunk: Uint8Array) => {
      hasCome = true;
      reader.take(chunk);
    });
    response.on("error", () => {});
    response.on("close", () => {
      silence.cancel();
      this.#lost(url);
    });
    this.#listener.opened(tookMs);
  }

  #lost(url: string): void {
    if (this.#state === "closed") return;
    this.#shared.logger.warn("lost TCP streaming connection with remote peer", {
      ...this.#fields(),
      url,
    });
    this.#listener.lost();
    this.#waitAndRetry();
  }

  #failed(error: unknown): void {
    if (this.#state === "closed") return;
    const failure = error instanceof DialError ? error : new DialError("Failed", String(error));
    const fields = { ...this.#fields(), ...failure.fields, error: failure.message };
    const { logger } = this.#shared;
    // Loud when it is news, quiet when it is the same again.
    if (this.#dialLog.allows(failure.message)) logger.warn(failure.headline, fields);
    else logger.debug(failure.headline, fields);
    this.#picked = (this.#picked + 1) % Math.max(1, this.#urls.length);
    this.#waitAndRetry();
  }

  #waitAndRetry(): void {
    this.#state = "waiting";
    this.#retry = this.#shared.clock.after(this.#backoff.nextMs(), () => this.wake());
  }

  #fields(): { readonly [name: string]: string } {
    return {
      ...peerFields(this.#shared, this.#source.id),
      "stream-reader-type": this.#source.stream,
    };
  }
}
