/**
 * Priority and fairness in a simple form (apiserver: pkg/util/flowcontrol, with its mandatory and
 * suggested levels): each level has seats of its own; requests that find none wait in a queue per
 * user, and the queues are served in turn. A full queue refuses with 429 and Retry-After.
 */

import type { Clock } from "@quorate/host";
import type { UserInfo } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { overloaded } from "../handlers/statuses.ts";
import type { Target } from "../handlers/target.ts";

/** Requests of one user that may wait at a level. */
export const MAX_WAITING_PER_USER = 50;
/** Requests that may wait at a level. */
export const MAX_WAITING_PER_LEVEL = 2_000;
/** A request waits at most this long for a seat. */
export const MAX_WAIT_MS = 15_000;
const RETRY_AFTER_SECONDS = 1;

export type LevelName = "exempt" | "system" | "leader-election" | "workload" | "catch-all";

/** Shares of all seats, as Kubernetes' suggested levels have them. */
const SHARES: Readonly<Record<Exclude<LevelName, "exempt">, number>> = {
  system: 30,
  "leader-election": 10,
  workload: 100,
  "catch-all": 5,
};

const SYSTEM_GROUPS = new Set(["system:nodes", "system:monitoring"]);
const LEADER_RESOURCES = new Set(["leases", "endpoints"]);
const LEADER_VERBS = new Set(["get", "create", "update", "patch"]);
const HEALTH_PATH = /^\/(?:healthz|livez|readyz)(?:\/|$)/;

/** Which level a request belongs to. */
export function levelOf(user: UserInfo, target: Target): LevelName {
  if (user.groups.includes("system:masters")) return "exempt";
  if (!target.isResourceRequest && HEALTH_PATH.test(target.path)) return "exempt";
  if (!user.groups.includes("system:authenticated")) return "catch-all";
  if (LEADER_RESOURCES.has(target.resource) && LEADER_VERBS.has(target.verb))
    return "leader-election";
  if (/^system:kube-/.test(user.name) || user.groups.some((group) => SYSTEM_GROUPS.has(group)))
    return "system";
  return "workload";
}

interface Waiting {
  seat(): void;
}

/** One level: its seats, and who waits for them. */
class Level {
  readonly seats: number;
  taken = 0;
  waiting = 0;
  rejected = 0;
  /** By user, in the order in which they are served next. */
  readonly queues = new Map<string, Waiting[]>();

  constructor(seats: number) {
    this.seats = seats;
  }

  /** Hands the seat to the next who waits. */
  release(): void {
    const [first] = this.queues;
    if (first === undefined) {
      this.taken--;
      return;
    }
    const [user, queue] = first;
    this.queues.delete(user);
    const next = defined(queue.shift(), "a request of the user");
    // The user's other requests go behind those of other users.
    if (queue.length > 0) this.queues.set(user, queue);
    next.seat();
  }

  enqueue(user: string, waiting: Waiting): void {
    const queue = this.queues.get(user);
    if (queue === undefined) this.queues.set(user, [waiting]);
    else queue.push(waiting);
    this.waiting++;
  }

  leave(user: string, waiting: Waiting): void {
    const queue = this.queues.get(user);
    const at = queue?.indexOf(waiting) ?? -1;
    if (queue === undefined || at === -1) return;
    queue.splice(at, 1);
    if (queue.length === 0) this.queues.delete(user);
  }

  isFull(user: string): boolean {
    const ownWaiting = this.queues.get(user)?.length ?? 0;
    return ownWaiting >= MAX_WAITING_PER_USER || this.waiting >= MAX_WAITING_PER_LEVEL;
  }
}

/** Seats for all requests of a server. */
export class PriorityLevels {
  readonly #levels = new Map<LevelName, Level>();
  readonly #clock: Clock;

  /** @param maxInFlight seats of all levels together */
  constructor(maxInFlight: number, clock: Clock) {
    this.#clock = clock;
    const total = Object.values(SHARES).reduce((sum, share) => sum + share);
    for (const [name, share] of Object.entries(SHARES)) {
      const seats = Math.max(1, Math.floor((maxInFlight * share) / total));
      this.#levels.set(name as LevelName, new Level(seats));
    }
  }

  /**
   * Resolves when there is a seat, with the function that releases it. Rejects with ApiError 429
   * where too many wait, or none became free in time.
   */
  async seat(name: LevelName, user: string): Promise<() => void> {
    const level = this.#levels.get(name);
    if (level === undefined) return () => {};
    if (level.taken < level.seats) level.taken++;
    else await this.#wait(level, user);
    let isTaken = true;
    return () => {
      if (isTaken) level.release();
      isTaken = false;
    };
  }

  /** Seats in use, requests that wait, and requests refused so far. */
  counts(name: LevelName): { taken: number; waiting: number; rejected: number } {
    const { taken = 0, waiting = 0, rejected = 0 } = this.#levels.get(name) ?? {};
    return { taken, waiting, rejected };
  }

  #wait(level: Level, user: string): Promise<void> {
    if (level.isFull(user)) {
      level.rejected++;
      return Promise.reject(overloaded(RETRY_AFTER_SECONDS));
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        seat: () => {
          timer.cancel();
          level.waiting--;
          resolve();
        },
      };
      const timer = this.#clock.after(MAX_WAIT_MS, () => {
        level.leave(user, waiting);
        level.waiting--;
        level.rejected++;
        reject(overloaded(RETRY_AFTER_SECONDS));
      });
      level.enqueue(user, waiting);
    });
  }
}
