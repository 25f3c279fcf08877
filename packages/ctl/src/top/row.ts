/** The state of one member in top. */
import type { StatusResponse } from "@quorate/proto";
import type { MetricsText } from "../observe/metrics-text.ts";
import type { History } from "./history.ts";

/** A member's metrics at one time, in monotonic milliseconds. */
export interface Scrape {
  readonly atMs: number;
  readonly metrics: MetricsText;
}

/** The state of one member, or of an endpoint that has not led to a member yet. */
export interface Row {
  readonly label: string;
  /** The member from the list or from its own status; undefined before either is known. */
  readonly memberId: bigint | undefined;
  readonly isNeverStarted: boolean;
  readonly status: StatusResponse | undefined;
  /** Arrival of the status, in monotonic milliseconds. */
  readonly statusAtMs: number | undefined;
  /** The polling round of the status. */
  readonly round: number;
  /** The Raft index of the previous status. */
  readonly indexBefore: number | undefined;
  /** The two newest scrapes. */
  readonly now: Scrape | undefined;
  readonly before: Scrape | undefined;
  /** Why the last poll failed; undefined if it succeeded. */
  readonly failure: string | undefined;
  readonly calls: History;
  readonly fsync: History;
}
