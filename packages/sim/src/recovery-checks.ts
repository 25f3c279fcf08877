/**
 * What is demanded once all is healed: progress through each member, the end of every lease,
 * watches that were notified of everything, and members that are alike; and the reads that show
 * where writes of unknown outcome stand.
 */
import type { Member } from "@quorate/member";
import type { Scheduler } from "./base/scheduler.ts";
import type { LeaseCheck } from "./check/lease-lives.ts";
import { type Safety, violate } from "./check/safety.ts";
import type { Clients } from "./clients.ts";
import type { LeaseClients } from "./lease-clients.ts";
import type { Network } from "./network.ts";
import type { Node } from "./node.ts";
import type { Operator } from "./operator.ts";
import type { Story } from "./report/story.ts";
import type { WatchClients } from "./watch-clients.ts";

/**
 * Revisions that are read one by one at the end, from the newest back: they show the places of
 * writes whose outcome is unknown.
 */
const MAX_SWEPT_REVISIONS = 3000;

export interface RecoveryChecksDeps {
  readonly nodes: readonly Node[];
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly network: Network;
  readonly safety: Safety;
  readonly leaseCheck: LeaseCheck;
  readonly clients: Clients;
  readonly watchClients: WatchClients;
  readonly leaseClients: LeaseClients;
  readonly operator: Operator;
}

function membersOf(store: Member["store"]): string {
  const members = store.membership.members();
  return members
    .map((one) => `${one.id} ${one.name} ${one.peerUrls} ${one.isLearner ? "learner" : "voter"}`)
    .join(", ");
}

/**
 * Each resolves when what it demands is so, and rejects with a Violation where it cannot be; how
 * long that may take others say.
 */
export class RecoveryChecks {
  readonly #deps: RecoveryChecksDeps;

  constructor(deps: RecoveryChecksDeps) {
    this.#deps = deps;
  }

  /** How the members stand, in words. */
  standing(): string {
    return this.#deps.nodes
      .map((node) => {
        const { member } = node;
        if (member === undefined)
          return `${node.name} ${node.refused ? "refused" : node.down ? "is down" : "is starting"}`;
        const { term, commitIndex, appliedIndex, isLeader } = member;
        return `${node.name} term ${term} commit ${commitIndex} applied ${appliedIndex}${isLeader ? " leads" : ""}`;
      })
      .join("; ");
  }

  /** A write and a linearizable read through each member that is not damaged. */
  async progress(): Promise<void> {
    for (const node of this.#deps.nodes) {
      for (let i = 0; ; i++) {
        const put = { kind: "put", key: "progress", value: `${node.name}.${i}` } as const;
        // A learner serves neither.
        if (node.refused || node.member?.isLearner === true) break;
        const mode = { serializable: false, atRevision: 0 };
        const written = await this.#deps.clients.call("healer", node, put, mode, 10_000);
        if (written.outcome?.kind === "refused") {
          await this.#deps.operator.endAlarms(node);
          // At once: the clients, who go on, may fill a tight quota again within milliseconds.
          await this.#deps.scheduler.delay(1);
          continue;
        }
        if (written.outcome?.kind === "answered") {
          const read = await this.#deps.clients.call(
            "healer",
            node,
            { kind: "range", key: "progress", end: "" },
            mode,
            10_000,
          );
          if (read.outcome?.kind === "answered") break;
        }
        await this.#deps.scheduler.delay(100);
      }
    }
  }

  #members(): Member[] {
    return this.#deps.nodes.flatMap((node) => node.member ?? []);
  }

  /** No client renews any more: all leases must end by themselves. */
  async leasesEnd(): Promise<void> {
    const isSo = () =>
      this.#deps.clients.idle &&
      this.#deps.leaseClients.idle &&
      this.#deps.leaseCheck.existing.length === 0;
    while (!isSo()) await this.#deps.scheduler.delay(100);
  }

  /** Every watcher has to be notified of everything. */
  async watchersHear(): Promise<void> {
    while (this.#deps.watchClients.behind().length > 0) await this.#deps.scheduler.delay(50);
  }

  /** Waits until all clients are done and all members have applied the same. */
  async converge(): Promise<void> {
    const isSo = () => {
      const members = this.#members();
      return (
        this.#deps.clients.idle &&
        members.length === this.#deps.nodes.filter((node) => !node.refused).length &&
        members.every(
          (member) => member.appliedIndex === this.#deps.safety.lastIndex && member.leader !== 0n,
        )
      );
    };
    while (!isSo()) await this.#deps.scheduler.delay(50);
  }

  /**
   * SIM-7. What comes in meanwhile (a member that publishes its name again, an alarm) makes it
   * begin again.
   */
  async compare(): Promise<void> {
    for (;;) {
      await this.converge();
      const index = this.#deps.safety.lastIndex;
      const found: { readonly member: Member; readonly text: string }[] = [];
      for (const member of this.#members()) {
        await member.space.compacted();
        const { hash, revision, compactRevision } = await member.store.mvcc.hashKV(0);
        found.push({
          member,
          text: `hash ${hash} at revision ${revision}, compacted ${compactRevision}`,
        });
      }
      if (
        found.some(({ member }) => member.appliedIndex !== index) ||
        this.#deps.safety.lastIndex !== index
      )
        continue;
      for (const { member, text } of found) {
        this.#deps.story.record(member.config.name, text);
        this.#compareWith(member, text, found[0]);
      }
      return;
    }
  }

  /** SIM-11: a member dials the others where the membership says that they are. */
  #compareDialled({ config, id, store }: Member): void {
    const others = store.membership.members().filter((one) => one.id !== id);
    const expected = others.map((one) => `${one.id} ${one.peerUrls}`).sort();
    const found = this.#deps.network.dialledBy(id).map((peer) => `${peer.id} ${peer.urls}`);
    // A member that was removed a moment ago is still notified of it.
    const missing = expected.filter((one) => !found.includes(one));
    if (missing.length > 0)
      violate(
        "SIM-11",
        `${config.name} dials ${found.join(", ")}, and the membership has ${expected.join(", ")}`,
      );
  }

  #compareWith(
    member: Member,
    text: string,
    first: { readonly member: Member; readonly text: string },
  ): void {
    const { config, store } = member;
    const { name } = config;
    const other = first.member.config.name;
    if (text !== first.text) violate("SIM-7", `${name} has ${text}, ${other} ${first.text}`);
    const wrong = this.#deps.safety.contentDiffers(store);
    if (wrong !== undefined) violate("SIM-7", `${name}: ${wrong}`);
    const list = membersOf(store);
    if (list !== membersOf(first.member.store))
      violate(
        "SIM-7",
        `${name} has the members ${list}, ${other} ${membersOf(first.member.store)}`,
      );
    this.#compareDialled(member);
    const leases = [...store.lessor.all()].map(({ id }) => `${id}`).sort();
    if (leases.join(" ") !== this.#deps.leaseCheck.existing.join(" ")) {
      violate(
        "SIM-7",
        `${name} has the leases ${leases.join(" ")}, not ${this.#deps.leaseCheck.existing.join(" ")}`,
      );
    }
  }

  /** Reads the newest revision, and all that are left of those that no answered write has. */
  async sweep(): Promise<void> {
    const node = this.#deps.nodes.find((one) => one.member !== undefined && !one.isAltered);
    if (node?.member === undefined) return;
    const last = node.member.store.mvcc.currentRevision;
    const first = Math.max(1, node.member.store.mvcc.compactRevision, last - MAX_SWEPT_REVISIONS);
    const known = new Set<number>();
    for (const { outcome, request } of this.#deps.clients.operations) {
      if (outcome?.kind === "answered" && request.kind !== "range")
        known.add(outcome.answer.revision);
    }
    const everything = { kind: "range", key: "\0", end: "\xff" } as const;
    for (let revision = last; revision >= first; revision--) {
      if (known.has(revision) && revision !== last) continue;
      await this.#deps.clients.call(
        "sweeper",
        node,
        everything,
        { serializable: true, atRevision: revision },
        10_000,
      );
    }
  }
}
