/**
 * Makes members' stores differ, one at a time and with a majority left that is right; and the
 * operator who deals with what comes of it where members do not mend themselves: a member that the
 * alarm CORRUPT names is given up, and then the alarm is ended.
 */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmResponse,
  AlarmType,
  MaintenanceService,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import type { CorruptionCheck } from "./check/corruption.ts";
import type { Safety } from "./check/safety.ts";
import type { Node } from "./node.ts";

const { Alarm } = MaintenanceService.methods;

const CALL_TIMEOUT_MS = 8000;
/**
 * The operator looks as often, and gives up a member that keeps others from starting after so many
 * looks without an answer.
 */
const LOOK_EVERY_MS = 700;
const MAX_SILENT_LOOKS = 12;
/**
 * After so many looks at an alarm that names no member it compares hashes, and does what the
 * alarm's text says: it gives up the member that differs, or, where members mend themselves, ends
 * all alarms. A member that mends itself is no witness; with the alarm against it, that ends.
 */
const MAX_NAMELESS_LOOKS = 12;

export interface SaboteurDeps extends ActorDeps {
  readonly check: CorruptionCheck;
  readonly safety: Safety;
  /** Whether one more member can do without what it has. */
  mayDamage(): boolean;
}

export class Saboteur extends Actor<SaboteurDeps> {
  #isActive = true;
  #nameless = 0;
  readonly counts = { alarmsEnded: 0, condemned: 0 };

  start(): void {
    if (this.options.sabotageEveryMs === 0) return;
    const { fail } = this.deps;
    this.#work().catch(fail);
    this.#mend().catch(fail);
  }

  /** No more alterations; what was found is still dealt with. */
  settle(): void {
    this.#isActive = false;
  }

  /**
   * What is left to be found or mended, in words; undefined if all members are like the others and
   * no alarm CORRUPT is raised.
   */
  get unsettled(): string | undefined {
    const { nodes, safety, check } = this.deps;
    for (const node of nodes) {
      if (node.refused || !this.#isVisible(node)) continue;
      const what = node.alterations.map(({ key, revision }) => `${key} at ${revision}`).join(", ");
      if (!check.isNamed(node.memberId))
        return `CORRUPT-2: ${node.name} differs in ${what}, and no alarm names it`;
      return `CORRUPT-4: ${node.name} was named, and still differs in ${what}`;
    }
    return safety.alarms.isCorrupt ? "CORRUPT-4: an alarm CORRUPT has not ended" : undefined;
  }

  /**
   * Whether a hash shows an alteration: what was superseded before the last compaction is about to
   * go, and left out.
   */
  #isVisible(node: Node): boolean {
    const { keys } = this.deps.safety.lastState;
    const compacted = node.member?.store.mvcc.compactRevision ?? this.deps.safety.compactRevision;
    return node.alterations.some(
      ({ key, revision }) => revision > compacted || keys.get(key)?.mod === revision,
    );
  }

  async #work(): Promise<void> {
    const { scheduler, nodes, mayDamage, story } = this.deps;
    while (this.#isActive) {
      await scheduler.delay(2 * this.random.unit() * this.options.sabotageEveryMs);
      // One at a time: of two that differ, one could be rebuilt from the other.
      if (
        !this.#isActive ||
        nodes.some((node) => node.isAltered && !node.refused) ||
        nodes.length < 3 ||
        !mayDamage()
      )
        continue;
      const node = nodes[this.random.below(nodes.length)];
      if (!node.refused && !node.gone && node.alter())
        story.record("saboteur", `altered ${node.name}`);
    }
  }

  async #mend(): Promise<void> {
    const { scheduler, nodes, check } = this.deps;
    let silent = 0;
    while (!this.isStopped) {
      await scheduler.delay(LOOK_EVERY_MS);
      if (!check.isAnyAltered) continue;
      // One that does not start for that is never named: the operator, who looks at its log,
      // abandons it.
      if (!this.#isActive)
        for (const one of nodes)
          if (one.foundDifference && one.isAltered && !one.refused) this.#condemn(one);
      const node = nodes[this.random.below(nodes.length)];
      const list = AlarmRequest.encode({
        action: AlarmRequest_AlarmAction.GET,
        alarm: AlarmType.CORRUPT,
      });
      const { bytes } = await this.deps.network.exchange(node, Alarm.path, list, CALL_TIMEOUT_MS);
      if (bytes === undefined) {
        // A member that differs keeps those that would make a majority from starting: it has to go
        // first.
        if (!this.#isActive && ++silent > MAX_SILENT_LOOKS && !this.options.selfHeal)
          this.#giveUpAltered();
        continue;
      }
      silent = 0;
      // Among members of etcd a member that heals itself would do so now, and must not.
      if (this.options.etcdMembers > 0 && this.#isActive) continue;
      const raised = AlarmResponse.decode(bytes).alarms.map(({ memberID }) => memberID);
      if (
        this.options.selfHeal &&
        raised.includes(0n) &&
        nodes.some((one) => !one.refused && this.#isVisible(one))
      ) {
        if (this.#isActive || ++this.#nameless < MAX_NAMELESS_LOOKS) continue;
        this.#nameless = 0;
        for (const memberId of raised) await this.#end(memberId, node);
        continue;
      }
      for (const memberId of raised) await this.#deal(memberId, node);
    }
  }

  async #deal(memberId: bigint, asked: Node): Promise<void> {
    const { nodes } = this.deps;
    const named = nodes.find((node) => node.memberId === memberId && memberId !== 0n);
    // It ends the alarm itself when it is like the others.
    if (this.options.selfHeal && named !== undefined) return;
    if (named !== undefined && !named.refused) this.#condemn(named);
    // No member was named: that is over when the one that differs has been, or when the operator
    // has found out who that is.
    if (memberId === 0n && nodes.some((node) => !node.refused && this.#isVisible(node))) {
      if (this.#isActive || ++this.#nameless < MAX_NAMELESS_LOOKS) return;
      this.#giveUpAltered();
    }
    await this.#end(memberId, asked);
  }

  async #end(memberId: bigint, asked: Node): Promise<void> {
    const end = AlarmRequest.encode({
      action: AlarmRequest_AlarmAction.DEACTIVATE,
      memberID: memberId,
      alarm: AlarmType.CORRUPT,
    });
    this.deps.story.record(
      "operator",
      `ends the alarm CORRUPT of ${memberId.toString(16)} through ${asked.name}`,
    );
    this.deps.safety.etcd?.askedForEnd();
    const { bytes } = await this.deps.network.exchange(asked, Alarm.path, end, CALL_TIMEOUT_MS);
    if (bytes !== undefined) this.counts.alarmsEnded++;
  }

  #giveUpAltered(): void {
    for (const node of this.deps.nodes) if (node.isAltered && !node.refused) this.#condemn(node);
  }

  #condemn(node: Node): void {
    this.deps.story.record("operator", `gives up ${node.name}, which differs from the others`);
    this.counts.condemned++;
    node.condemn();
  }
}
