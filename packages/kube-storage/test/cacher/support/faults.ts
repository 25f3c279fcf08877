/** What can be done to a connection between a Cacher and its store. */
import type { ApiError } from "../../../src/meta/status.ts";

export interface Delays {
  /** Of a request, and of its response, at the most. */
  readonly callMs: number;
  /** Of an event of a watch, at the most. */
  readonly eventMs: number;
}

export interface Faults {
  delays: Delays;
  /** Requests fail, and watches cannot begin. */
  isDown: boolean;
  readonly watchCount: number;
  /** All watches end. */
  loseConnections(error: ApiError | undefined): void;
  /** History up to `revision` goes; watches that have not sent it may end. */
  compacted(revision: number): void;
}
