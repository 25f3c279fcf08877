/**
 * Replaces members as `quoratectl member replace` does: before each step it asks how the cluster
 * stands, so that it may be interrupted at any point and begun again. Here it is, again and again.
 *
 *     cluster has        step
 *     OLD                add the new one as a learner
 *     OLD, NEW learner   promote it, which is refused until it has caught up
 *     OLD, NEW voter     remove OLD
 *     NEW voter          done
 */
import type { Random } from "@quorate/host";
import {
  ClusterService,
  MemberAddRequest,
  MemberPromoteRequest,
  MemberRemoveRequest,
  type Member as WireMember,
} from "@quorate/proto";
import type { Scheduler } from "./base/scheduler.ts";

const { MemberAdd, MemberPromote, MemberRemove } = ClusterService.methods;

/** How long a run of the tool goes on, in steps; it is interrupted then and given again later. */
const MAX_STEPS = 6;
/** A replacement that has not come to its end after so many runs is given up. */
const MAX_RUNS = 20;

export interface ReplacerDeps {
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Mean time between two replacements. */
  readonly everyMs: number;
  list(): Promise<readonly WireMember[] | undefined>;
  /** Asks any member. */
  ask(what: string, path: string, bytes: Uint8Array): Promise<Uint8Array | undefined>;
  newUrl(): string;
  /** Whether the others are a quorum without it. */
  mayRemove(member: WireMember, members: readonly WireMember[]): boolean;
}

export class Replacer {
  readonly #deps: ReplacerDeps;
  /** Where members were added, or may still be: a request may take effect late. */
  readonly #urls = new Set<string>();
  #stopped = false;
  readonly counts = { runs: 0, replaced: 0 };

  constructor(deps: ReplacerDeps) {
    this.#deps = deps;
  }

  /**
   * Whether it has asked for a member at this URL. The tool finds its member by that URL. Had the
   * member moved, a repeated run would add it there once more.
   */
  hasAdded(url: string): boolean {
    return this.#urls.has(url);
  }

  /** Whatever was begun is left as it is. */
  stop(): void {
    this.#stopped = true;
  }

  async work(): Promise<void> {
    const { scheduler, random, everyMs, list, newUrl } = this.#deps;
    while (!this.#stopped) {
      await scheduler.delay(2 * random.unit() * everyMs);
      const members = await list();
      if (this.#stopped || members === undefined || members.length === 0) continue;
      const { ID } = members[random.below(members.length)];
      const url = newUrl();
      this.#urls.add(url);
      for (let run = 0; run < MAX_RUNS && !this.#stopped; run++) {
        this.counts.runs++;
        if (await this.#run(ID, url)) break;
        await scheduler.delay(random.unit() * 800);
      }
    }
  }

  /** One run of the tool, which may be interrupted; true if nothing is left to do. */
  async #run(old: bigint, url: string): Promise<boolean> {
    const { scheduler, random } = this.#deps;
    for (let left = 1 + random.below(MAX_STEPS); left > 0 && !this.#stopped; left--) {
      if (await this.#step(old, url)) return true;
      await scheduler.delay(200);
    }
    return false;
  }

  async #step(oldId: bigint, url: string): Promise<boolean> {
    const { list, ask, mayRemove } = this.#deps;
    const members = await list();
    if (members === undefined || this.#stopped) return false;
    const old = members.find(({ ID }) => ID === oldId);
    const added = members.find(({ peerURLs }) => peerURLs.includes(url));
    if (added === undefined) {
      // Another caller has removed it.
      if (old === undefined) return true;
      await ask(
        `replace ${oldId}: add ${url} as learner`,
        MemberAdd.path,
        MemberAddRequest.encode({ peerURLs: [url], isLearner: true }),
      );
    } else if (added.isLearner) {
      if (added.name !== "") {
        await ask(
          `replace ${oldId}: promote ${added.ID}`,
          MemberPromote.path,
          MemberPromoteRequest.encode({ ID: added.ID }),
        );
      }
    } else if (old !== undefined) {
      if (mayRemove(old, members)) {
        await ask(
          `replace ${oldId}: remove it`,
          MemberRemove.path,
          MemberRemoveRequest.encode({ ID: oldId }),
        );
      }
    } else {
      this.counts.replaced++;
      return true;
    }
    return false;
  }
}
