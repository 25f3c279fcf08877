/** A connection, as its exchanges and tunnels see it. */
import type { ByteBudget } from "../http2/byte-budget.ts";
import type { Output } from "../http2/output.ts";
import type { Peer } from "../http2/peer.ts";
import type { Http1Shared } from "./shared.ts";

/** A tunnel, as its connection sees it. */
export interface CarriedTunnel {
  /** The listener takes no bytes for now. */
  readonly isPaused: boolean;
  /** Whether bytes can be delivered now. */
  readonly isOpen: boolean;
  data(bytes: Uint8Array): void;
  drained(): void;
  /** The connection has ended. */
  closed(): void;
}

export interface Carrier {
  readonly peer: Peer;
  readonly shared: Http1Shared;
  readonly out: Output;
  /** Bytes of requests that are being received or processed. */
  readonly held: ByteBudget;
  /** Bytes that were sent and that the socket has not taken. */
  readonly unsentBytes: number;
  /** Whether the connection closes behind the present response. */
  readonly isLast: boolean;
  /** Bytes of the present body that are still to come; undefined in a chunked one. */
  readonly bodyLeftBytes: number | undefined;
  /** Reads on, after `pause` or after the response. */
  pump(): void;
  /** Counts bytes that are about to be written to the output; false if the connection has ended. */
  take(sizeBytes: number): boolean;
  /** Notifies the owner of the socket of new output. */
  touched(): void;
  /** Notifies the exchange or tunnel once no more bytes than this wait. */
  awaitDrain(sizeBytes: number): void;
  /** The present response is complete. @param isKept whether another one may follow */
  responded(isKept: boolean): void;
  /** Hands the connection over; `pump` delivers what followed the head. */
  takenOver(tunnel: CarriedTunnel): void;
  /** Ends the connection after the output. */
  finish(): void;
  /** Ends the connection at once. */
  destroy(): void;
}
