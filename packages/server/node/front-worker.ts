/**
 * The program of a front-end thread: the same engine and gateway as on the member's thread, over
 * the services of the member. It is its own worker: the member's thread loads this file for its
 * address alone.
 */
import { runFront } from "@quorate/front/node";
import type { TlsOptions, TlsSource } from "@quorate/host/node";
import { EngineServer, type EngineServerOptions } from "@quorate/rpc/node";
import { type ClientHttpOptions, clientHttp } from "./client-http.ts";
import type { PortReport } from "./port-report.ts";

/** What a front-end is started with. */
export interface FrontProgram {
  /** Its addresses have no doors: sockets come from the member. */
  readonly engine: EngineServerOptions;
  readonly http: ClientHttpOptions;
  readonly tls: TlsOptions | undefined;
}

/** The address of this file. */
export const frontWorkerUrl: URL = new URL(import.meta.url);

/** TLS options that the member sends. */
class SentTls implements TlsSource {
  #current: TlsOptions;
  readonly #listeners = new Set<() => void>();

  constructor(tls: TlsOptions) {
    this.#current = tls;
  }

  get current(): TlsOptions {
    return this.#current;
  }

  set current(tls: TlsOptions) {
    this.#current = tls;
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

await runFront(async ({ services, http: rest, doors, clock, logger, program }) => {
  const { engine, http, tls } = program as FrontProgram;
  const source = tls === undefined ? undefined : new SentTls(tls);
  const side = clientHttp(http, {
    services,
    // The member counts calls where they arrive.
    observer: undefined,
    rest,
    clock,
    logger: logger.child("etcdhttp"),
  });
  const listen = engine.listen.map((address, place) => ({ ...address, door: doors[place] }));
  const server = new EngineServer(
    { ...engine, tls: source, listen },
    { services, http: side.handler, clock, logger },
  );
  return {
    listen: () => server.listen(),
    close: async (graceMs) => {
      await server.close(graceMs);
      side.close();
    },
    report: (): PortReport => ({ engine: server.counters(), gateway: side.gatewayReport() }),
    set: (value) => {
      if (source !== undefined) source.current = value as TlsOptions;
    },
  };
});
