/** What all calls of one front-end share on the member's thread. */
import type { Clock } from "@quorate/host";
import type { CallShared, HttpContext, SharedBudget } from "@quorate/rpc";
import type { FanOut } from "./fan-out.ts";
import type { Link } from "./link.ts";

export interface ServedContext extends CallShared {
  readonly link: Link;
  /** Messages for many streams, which go into the link later in this turn. */
  readonly fanOut: FanOut;
  readonly clock: Clock;
  readonly http: HttpContext;
  /** Bytes of HTTP requests that handlers hold. */
  readonly held: SharedBudget;
  /** The end of a call was sent: its number may come again. */
  ended(call: number): void;
}
