/** What a stream brings, and why it ends, judged as calls are (permission-check.ts). */
import { type ErrorName, errorNameOf } from "@quorate/proto";
import { violate } from "../base/violation.ts";
import type { Node } from "../node.ts";
import type { CallRules } from "./calls.ts";
import { type Identity, nameOf } from "./identity.ts";
import { type Moment, type PermissionCheck, REFUSED } from "./permission-check.ts";

export class StreamCheck {
  readonly #check: PermissionCheck;
  readonly #node: Node;
  readonly #identity: Identity;
  readonly #path: string;
  /** When it was opened. */
  readonly begin: Moment;
  #usedMs: number;

  constructor(check: PermissionCheck, node: Node, identity: Identity, path: string) {
    this.#check = check;
    this.#node = node;
    this.#identity = identity;
    this.#path = path;
    this.begin = check.moment(node);
    const { session } = identity;
    this.#usedMs = session?.lastUsedMs ?? 0;
    if (session !== undefined) session.lastUsedMs = this.begin.ms;
  }

  /** Now. */
  moment(): Moment {
    return this.#check.moment(this.#node);
  }

  /** AUTH-4: a message answers what was sent at a moment. */
  served(sent: Moment, rules: CallRules): void {
    if (this.#node.timesAltered > 0 && rules.hasLeases) return;
    const first = rules.served === "linear" ? sent.index : this.#check.lowest(sent);
    const call = { identity: this.#identity, begin: sent, usedMs: this.#usedMs, rules };
    this.#check.counts.served++;
    const { session } = this.#identity;
    if (session !== undefined) this.#usedMs = session.lastUsedMs = this.moment().ms;
    if (this.#check.isEver(call, first, (keysOf) => rules.needs(keysOf))) return;
    violate(
      "AUTH-4",
      `${nameOf(this.#identity)} is served ${this.#path} by ${this.#node.name}, which was not permitted from ${first} on`,
    );
  }

  /** AUTH-5: the stream has ended. */
  ended(rules: CallRules, reason: string): void {
    this.endedForAny([rules], reason);
  }

  /** AUTH-5: it has ended, for one of several requests. */
  endedForAny(all: readonly CallRules[], reason: string): void {
    const name = errorNameOf(reason);
    if (name === undefined || !REFUSED.has(name)) return;
    if (this.#node.timesAltered > 0 && all.some((rules) => rules.hasLeases)) return;
    this.#check.counts.refused++;
    const lowest = this.#check.lowest(this.begin);
    const last = this.moment().index;
    const explained = all.some((rules) => {
      const call = { identity: this.#identity, begin: this.begin, usedMs: this.#usedMs, rules };
      const first = rules.refused === "local" ? lowest : this.begin.index;
      // Users who are no longer permitted what a stream is for are denied it, whatever the reason.
      const names: ErrorName[] =
        name === "PermissionDenied"
          ? ["PermissionDenied", "UserEmpty", "UserNotFound", "AuthOldRevision", "InvalidAuthToken"]
          : [name as ErrorName];
      const span = { first, lowest, last };
      return names.some((one) =>
        this.#check.explains(call, one, span, (index) => rules.needs(this.#check.keysAt(index))),
      );
    });
    if (!explained)
      violate(
        "AUTH-5",
        `${nameOf(this.#identity)} has its ${this.#path} ended by ${this.#node.name} with ${name}, ` +
          `and was permitted from ${lowest} to ${last}`,
      );
  }
}
