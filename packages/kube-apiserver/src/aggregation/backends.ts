/**
 * Calls of other API servers: requests of clients that go on to them, and the server's own.
 * node/backends.ts has the real caller.
 *
 *     backends.call(request, listener)  ->  responded, data*, ended
 *                                       or  upgraded: the connection is the protocol's
 *                                       or  failed, before or behind `responded`
 */
import type { HttpTunnel } from "@quorate/host";

/** Where a request goes, and how the other side proves itself. */
export interface BackendPlace {
  readonly host: string;
  readonly port: number;
  /** The name in its certificate: "NAME.NAMESPACE.svc". */
  readonly serverName: string;
  /** PEM; undefined: the platform's CAs. */
  readonly caPem: string | undefined;
  /** Any certificate will do. */
  readonly isInsecure: boolean;
}

export type BackendHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface BackendRequest {
  readonly place: BackendPlace;
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** By lower-case names. */
  readonly headers: BackendHeaders;
  readonly body: Uint8Array;
}

/** A connection that speaks another protocol. */
export type BackendTunnel = Pick<
  HttpTunnel,
  "send" | "onData" | "onClose" | "onDrain" | "pause" | "resume" | "destroy"
>;

/** Exactly one of `ended`, `failed` and `upgraded` is called, as the last one. */
export interface BackendListener {
  responded(status: number, headers: Readonly<Record<string, string>>): void;
  data(bytes: Uint8Array): void;
  ended(): void;
  upgraded(headers: Readonly<Record<string, string>>, tunnel: BackendTunnel): void;
  /** @param reason in the words of Go's net/http, which clients and operators know */
  failed(reason: string): void;
}

export interface BackendCall {
  /** Stops and restarts the delivery of the response's body. */
  pause(): void;
  resume(): void;
  /** Ends the connection. The listener is called no more. */
  abort(): void;
}

export interface Backends {
  /** The listener is called later, and never within this call. */
  call(request: BackendRequest, listener: BackendListener): BackendCall;
}

/** A response that was read as a whole. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}
