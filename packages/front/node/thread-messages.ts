/**
 * What a front-end's thread and the member's post to each other, beside the rings. The number 0 has
 * the other's link run.
 */
import type { AddressInfo, Socket } from "node:net";
import type { LogFields, LogLevel } from "@quorate/host";
import type { LinkRings, MemberServicesOptions } from "../index.ts";

export const WAKE = 0;

/** What a thread is started with. */
export interface ThreadData {
  /** Says that the worker is a front-end. */
  readonly role: typeof FRONT_ROLE;
  readonly rings: LinkRings;
  readonly status: SharedArrayBuffer;
  readonly options: MemberServicesOptions;
  /** What its sockets are accepted on. */
  readonly places: readonly (AddressInfo | string)[];
  /** For the program that assembles the front-end's server. */
  readonly program: unknown;
}

export const FRONT_ROLE = "front";

export type ToThread =
  | typeof WAKE
  | { readonly kind: "socket"; readonly place: number; readonly socket: Socket }
  /** A new setting for the program. */
  | { readonly kind: "set"; readonly value: unknown }
  /** A report is to be made now. */
  | { readonly kind: "ask"; readonly ask: number }
  | { readonly kind: "close"; readonly graceMs: number };

export type FromThread =
  | typeof WAKE
  /** It serves. */
  | { readonly kind: "ready"; readonly thread: number | undefined }
  /** @param ask that it answers; undefined for one that nobody asked for */
  | { readonly kind: "report"; readonly report: unknown; readonly ask?: number }
  | {
      readonly kind: "log";
      readonly level: LogLevel;
      readonly caller: string;
      readonly msg: string;
      readonly fields: LogFields;
    }
  /** All connections have ended. */
  | { readonly kind: "closed" };

/** Words that a thread counts up for the member's. */
export const STATUS_BYTES = 64;
/** The thread's event loop runs. */
export const BEAT = 0;
/** Sockets that were taken, and of those that have closed. */
export const TAKEN_SOCKETS = 1;
export const CLOSED_SOCKETS = 2;

export const BEAT_PERIOD_MS = 250;
