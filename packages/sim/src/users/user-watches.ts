/**
 * Clients that watch what their users may, or may not, read:
 *
 *   AUTH-4, AUTH-5 as for calls: a watch is made, or refused, by what its member has applied
 *   AUTH-6 revoked watches  no event of a revision that was made after the last permission ended is
 *                           delivered; a watch that is not permitted by what its member has applied
 *                           ends within a second, with PermissionDenied
 *   AUTH-7 no gaps          until it ends, a watch delivers every change of its range in order
 */
import type { Random } from "@quorate/host";
import {
  defined,
  Event,
  fromLatin1,
  KeyValue,
  toLatin1,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "../base/actor.ts";
import { type ModelRange, matches } from "../base/model.ts";
import { violate } from "../base/violation.ts";
import type { Safety } from "../check/safety.ts";
import type { ClientStream } from "../exchanges.ts";
import type { Node } from "../node.ts";
import type { AuthModel } from "./auth-model.ts";
import { type Identity, nameOf } from "./identity.ts";
import type { Moment, PermissionCheck } from "./permission-check.ts";
import type { UserNetwork } from "./user-network.ts";

const { path: PATH } = WatchService.methods.Watch;
const LOOK_MS = 100;
/** A watch must have ended so long after its member knows that it is not permitted. */
const MAX_UNPERMITTED_MS = 1000;
const MOST_MS = 8000;

export interface UserWatchesDeps
  extends Pick<ActorDeps, "nodes" | "scheduler" | "story" | "random" | "fail"> {
  readonly safety: Safety;
  readonly check: PermissionCheck;
  readonly network: UserNetwork;
  /** Of the client's way to the member and back, at the most. */
  readonly latencyMs: number;
  anyone(): Identity;
}

/** What a run of watches came to. */
export interface WatchCounts {
  made: number;
  refused: number;
  revoked: number;
  events: number;
}

export class UserWatches extends Actor<UserWatchesDeps, { readonly keys: number }> {
  readonly counts: WatchCounts = { made: 0, refused: 0, revoked: 0, events: 0 };

  /** One client: one watch after the other. */
  async work(name: string): Promise<void> {
    const { scheduler, nodes } = this.deps;
    const random = this.deps.random.fork(name);
    while (!this.isStopped) {
      await scheduler.delay(random.unit() * 300);
      if (this.isStopped) return;
      const node = nodes[random.below(nodes.length)];
      const watch = new UserWatch(name, node, this.#range(random), this.deps, this.counts);
      const endMs = scheduler.nowMs + random.unit() * MOST_MS;
      while (!this.isStopped && !watch.isOver && scheduler.nowMs < endMs) {
        await scheduler.delay(LOOK_MS);
        watch.look();
      }
      watch.close();
    }
  }

  #range(random: Random): ModelRange {
    const key = `k${String.fromCharCode(97 + random.below(this.options.keys))}`;
    const ends = ["", "", `${key}~`, "l", "\0"];
    return { key, end: ends[random.below(ends.length)] };
  }
}

class UserWatch {
  readonly #name: string;
  readonly #node: Node;
  readonly #range: ModelRange;
  readonly #identity: Identity;
  readonly #deps: UserWatchesDeps;
  readonly #counts: WatchCounts;
  readonly #begin: Moment;
  readonly #usedMs: number;
  readonly #stream: ClientStream;
  /** The lowest index by which it was made; undefined until then. */
  #madeAt: number | undefined;
  /** The next revision that it may deliver. */
  #next = 0;
  /** Since when its member has known that it is not permitted. */
  #unpermittedSinceMs: number | undefined;
  isOver = false;

  constructor(
    name: string,
    node: Node,
    range: ModelRange,
    deps: UserWatchesDeps,
    counts: WatchCounts,
  ) {
    this.#name = name;
    this.#node = node;
    this.#range = range;
    this.#deps = deps;
    this.#counts = counts;
    this.#identity = deps.anyone();
    const { session } = this.#identity;
    this.#usedMs = session?.lastUsedMs ?? 0;
    this.#begin = deps.check.moment(node);
    if (session !== undefined) session.lastUsedMs = this.#begin.ms;
    this.#stream = deps.network.openAs(this.#identity, node, PATH, {
      message: (bytes) => this.#guard(() => this.#heard(WatchResponse.decode(bytes))),
      ended: () => {
        this.isOver = true;
      },
    });
    const value = {
      key: fromLatin1(range.key),
      rangeEnd: fromLatin1(range.end),
      prevKv: deps.random.below(2) === 0,
      startRevision: 0,
      filters: [],
      fragment: false,
      progressNotify: false,
      watchId: 0,
    };
    this.#stream.send(WatchRequest.encode({ requestUnion: { case: "createRequest", value } }));
  }

  close(): void {
    this.isOver = true;
    this.#stream.close();
  }

  #guard(judge: () => void): void {
    if (this.isOver) return;
    try {
      judge();
    } catch (error) {
      this.#deps.fail(error);
    }
  }

  #say(what: string): void {
    const { story } = this.#deps;
    story.record(this.#name, () => `${nameOf(this.#identity)} watches ${this.#node.name}: ${what}`);
  }

  #isPermitted(index: number, state: AuthModel): boolean {
    const { key, end } = this.#range;
    if (!state.isEnabled) return true;
    const call = { identity: this.#identity, begin: this.#begin, usedMs: this.#usedMs };
    const user = this.#deps.check.userAt(call, index, state);
    return state.verdict(user, [{ kind: "range", access: "read", key, end }]) === undefined;
  }

  /**
   * The same for a watch that was made: its user was recognised then, whatever became of the proof.
   */
  #isStillPermitted(index: number, state: AuthModel): boolean {
    const { user } = this.#identity;
    if (!state.isEnabled || this.#isPermitted(index, state)) return true;
    const { key, end } = this.#range;
    const roles = this.#identity.session?.roles;
    const identity = { user, authRevision: user === "" ? 0 : state.revision, roles };
    return state.verdict(identity, [{ kind: "range", access: "read", key, end }]) === undefined;
  }

  /** Whether it was permitted after some entry from `first` on. */
  #isEver(first: number, of: (index: number, state: AuthModel) => boolean): boolean {
    const { check, safety } = this.#deps;
    return check
      .turns(this.#identity, first, Math.max(first, safety.lastIndex))
      .some((index) => of(index, safety.users.at(index)));
  }

  #heard(response: WatchResponse): void {
    const { created, canceled, cancelReason, header, events } = response;
    if (created) this.#created(canceled, cancelReason, header?.revision ?? 0);
    else if (canceled) this.#canceled(cancelReason);
    else if (events.length > 0) this.#delivered(response);
  }

  #created(isRefused: boolean, reason: string, revision: number): void {
    const lowest = this.#deps.check.lowest(this.#begin);
    const permitted = (index: number, state: AuthModel) => this.#isPermitted(index, state);
    if (isRefused) {
      this.#counts.refused++;
      this.#say(`refused: ${reason}`);
      this.isOver = true;
      const forbidden = (index: number, state: AuthModel) => !this.#isPermitted(index, state);
      const isExplained = /invalid auth token/.test(reason)
        ? this.#mayLackToken(lowest)
        : this.#isEver(lowest, forbidden);
      if (!isExplained)
        violate("AUTH-5", `${this.#who()} is refused with "${reason}", and was permitted`);
      return;
    }
    this.#counts.made++;
    this.#say(`made at revision ${revision}`);
    if (!this.#isEver(lowest, permitted))
      violate("AUTH-4", `${this.#who()} is made, and was not permitted from ${lowest} on`);
    this.#madeAt = lowest;
    this.#next = revision + 1;
  }

  #who(): string {
    const { key, end } = this.#range;
    return `the watch of ${nameOf(this.#identity)} at ${this.#node.name} on ${JSON.stringify([key, end])}`;
  }

  #canceled(reason: string): void {
    this.isOver = true;
    this.#say(`ended: ${reason}`);
    this.#counts.revoked++;
    if (reason === "") return;
    const forbidden = (index: number, state: AuthModel) => !this.#isPermitted(index, state);
    // A watch from before enforcement may have had its user's token looked at for the first time
    // when that token had ended.
    const madeAt = this.#madeAt ?? 0;
    const isExplained = this.#isEver(madeAt, forbidden) || this.#mayLackToken(madeAt);
    if (!/PermissionDenied/.test(reason) || !isExplained)
      violate("AUTH-6", `${this.#who()} ends with "${reason}", and was permitted`);
  }

  /** Whether its user's token may have been none, from an entry on. */
  #mayLackToken(lowest: number): boolean {
    const { check, safety } = this.#deps;
    const call = { identity: this.#identity, begin: this.#begin, usedMs: this.#usedMs };
    const span = { first: lowest, lowest, last: safety.lastIndex };
    return check.explains({ ...call, rules: undefined }, "InvalidAuthToken", span, () => []);
  }

  #delivered({ events, header }: WatchResponse): void {
    const { safety } = this.#deps;
    this.#say(`${events.length} events up to ${header?.revision}`);
    if (this.#node.timesAltered > 0) return;
    for (const bytes of events) {
      const { key, modRevision } = KeyValue.decode(defined(Event.decode(bytes).kv, "the kv"));
      this.#counts.events++;
      if (!matches(this.#range, toLatin1(key)))
        violate("AUTH-6", `${this.#who()} delivers ${JSON.stringify(toLatin1(key))}`);
      this.#complete(modRevision);
      const index = safety.indexOf(modRevision) ?? safety.lastIndex;
      const still = (at: number, state: AuthModel) => this.#isStillPermitted(at, state);
      if (!this.#isEver(Math.max(index, this.#madeAt ?? 0), still))
        violate(
          "AUTH-6",
          `${this.#who()} delivers revision ${modRevision} of entry ${index}, which it was not permitted to read any more`,
        );
    }
  }

  /** AUTH-7: nothing of its range is missing before a revision. */
  #complete(revision: number): void {
    const { safety } = this.#deps;
    if (revision < this.#next - 1)
      violate("AUTH-7", `${this.#who()} delivers revision ${revision} after ${this.#next - 1}`);
    for (let at = this.#next; at < revision; at++) {
      const [before, after] = [safety.stateAt(at - 1), safety.stateAt(at)];
      if (before === undefined || after === undefined) continue;
      const left = after.range(this.#range).some(({ mod }) => mod === at);
      if (left || before.range(this.#range).length > after.range(this.#range).length)
        violate("AUTH-7", `${this.#who()} delivers revision ${revision} and not ${at}`);
    }
    this.#next = Math.max(this.#next, revision + 1);
  }

  /** AUTH-6: whether it should have ended. */
  look(): void {
    this.#guard(() => {
      const { safety, scheduler, latencyMs } = this.#deps;
      const { member, process, starts } = this.#node;
      const index = member?.appliedIndex ?? 0;
      const isRunning = member !== undefined && process?.alive === true && !process.paused;
      if (this.#madeAt === undefined || !isRunning || starts !== this.#begin.starts) {
        this.#unpermittedSinceMs = undefined;
        return;
      }
      if (this.#isStillPermitted(index, safety.users.at(index))) {
        this.#unpermittedSinceMs = undefined;
        return;
      }
      const nowMs = scheduler.nowMs;
      this.#unpermittedSinceMs ??= nowMs;
      const forMs = nowMs - this.#unpermittedSinceMs;
      if (forMs > MAX_UNPERMITTED_MS + latencyMs)
        violate("AUTH-6", `${this.#who()} goes on ${forMs.toFixed(0)} ms after it was forbidden`);
    });
  }
}
