/** What top knows of one member. */
import type { StatusResponse } from "@quorate/proto";
import type { MetricsText } from "../observe/metrics-text.ts";
import type { History } from "./history.ts";

/** A member's metrics at one time, in monotonic milliseconds. */
export interface Scrape {
  readonly atMs: number;
  readonly metrics: MetricsText;
}

/** What is known of one member, or of an endpoint that has led to none so far. */
export interface Row {
  readonly label: string;
  /** As the cluster lists it, or as it has said itself; undefined before either is known. */
  readonly memberId: bigint | undefined;
  readonly isNeverStarted: boolean;
  readonly status: StatusResponse | undefined;
  /** When the status came, in monotonic milliseconds. */
  readonly statusAtMs: number | undefined;
  /** In which round the status was asked for. */
  readonly round: number;
  /** The Raft index of the status before. */
  readonly indexBefore: number | undefined;
  /** The two newest scrapes. */
  readonly now: Scrape | undefined;
  readonly before: Scrape | undefined;
  /** Why the last look gave no status; undefined if it gave one. */
  readonly failure: string | undefined;
  readonly calls: History;
  readonly fsync: History;
}
