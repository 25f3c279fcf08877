/**
 * An operator at work while the cluster runs: compares hashes, compacts, defragments, ends alarms,
 * moves leadership. What the members answer has to agree.
 */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmResponse,
  AlarmType,
  DefragmentRequest,
  HashKVRequest,
  HashKVResponse,
  MaintenanceService,
  StatusRequest,
  StatusResponse,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import { violate } from "./base/violation.ts";
import type { Safety } from "./check/safety.ts";
import type { Clients } from "./clients.ts";
import type { Reply } from "./exchanges.ts";
import type { Node } from "./node.ts";

const { Alarm, Defragment, HashKV, Status } = MaintenanceService.methods;

const CALL_TIMEOUT_MS = 10_000;
/** Hashes may be asked for as far back. */
const MAX_HASH_AGE_REVISIONS = 30;

export interface OperatorDeps extends ActorDeps {
  readonly clients: Clients;
  readonly safety: Safety;
}

export class Operator extends Actor<OperatorDeps> {
  /** What a hash was at a revision under a compaction, and who said so. */
  readonly #hashes = new Map<string, { readonly hash: number; readonly name: string }>();
  readonly counts = { hashes: 0, defragmentations: 0, alarmsEnded: 0 };

  start(): void {
    if (this.options.operatorEveryMs === 0) return;
    this.#work().catch((error: unknown) => this.deps.fail(error));
  }

  async #work(): Promise<void> {
    const { scheduler, nodes } = this.deps;
    while (!this.isStopped) {
      await scheduler.delay(this.random.unit() * 2 * this.options.operatorEveryMs);
      if (this.isStopped) return;
      const node = nodes[this.random.below(nodes.length)];
      const way = this.random.below(10);
      if (way < 5) await this.#hash(node);
      else if (way < 7) await this.#defragment(node);
      else if (way < 8) await this.#status(node);
      else if (way < 9) await this.#compact(node);
      else await this.endAlarms(node);
    }
  }

  #call(node: Node, what: string, path: string, bytes: Uint8Array): Promise<Reply> {
    this.deps.story.record("operator", `asks ${node.name}: ${what}`);
    return this.deps.network.exchange(node, path, bytes, CALL_TIMEOUT_MS);
  }

  async #hash(node: Node): Promise<void> {
    const known = this.deps.clients.knownRevision;
    const revision =
      this.random.below(2) === 0
        ? 0
        : Math.max(1, known - this.random.below(MAX_HASH_AGE_REVISIONS));
    const { isAltered, timesAltered } = node;
    const { bytes } = await this.#call(
      node,
      `HashKV ${revision}`,
      HashKV.path,
      HashKVRequest.encode({ revision }),
    );
    if (bytes === undefined) return;
    const { hash, hashRevision, compactRevision } = HashKVResponse.decode(bytes);
    this.deps.story.record(
      "operator",
      `${node.name} has hash ${hash} at ${hashRevision}, compacted ${compactRevision}`,
    );
    if (isAltered || node.timesAltered > timesAltered) return;
    const key = `${hashRevision} ${compactRevision}`;
    const other = this.#hashes.get(key);
    this.counts.hashes++;
    if (other === undefined) this.#hashes.set(key, { hash, name: node.name });
    else if (other.hash !== hash) {
      violate(
        "SIM-7",
        `at revision ${hashRevision}, compacted ${compactRevision}, ${node.name} has hash ${hash}, ${other.name} ${other.hash}`,
      );
    }
  }

  async #defragment(node: Node): Promise<void> {
    const { bytes } = await this.#call(
      node,
      "defragment",
      Defragment.path,
      DefragmentRequest.encode({}),
    );
    if (bytes !== undefined) this.counts.defragmentations++;
  }

  async #status(node: Node): Promise<void> {
    const { bytes } = await this.#call(node, "status", Status.path, StatusRequest.encode({}));
    if (bytes === undefined) return;
    const { raftIndex, raftAppliedIndex } = StatusResponse.decode(bytes);
    if (raftAppliedIndex > raftIndex)
      violate("SIM-4", `${node.name} has applied ${raftAppliedIndex} and committed ${raftIndex}`);
  }

  async #compact(node: Node): Promise<void> {
    await this.deps.clients.compact(
      "operator",
      node,
      Math.max(1, this.deps.clients.knownRevision - this.random.below(5)),
    );
  }

  /** Frees space and ends all alarms. */
  async endAlarms(node: Node): Promise<void> {
    const list = AlarmRequest.encode({ action: AlarmRequest_AlarmAction.GET });
    const { bytes } = await this.#call(node, "alarms", Alarm.path, list);
    if (bytes === undefined) return;
    const { alarms } = AlarmResponse.decode(bytes);
    if (alarms.length === 0) return;
    await this.deps.clients.compact("operator", node, this.deps.clients.knownRevision);
    for (const { memberID, alarm } of alarms) {
      // Members that differ are another's care.
      if (alarm === AlarmType.CORRUPT) continue;
      const end = AlarmRequest.encode({
        action: AlarmRequest_AlarmAction.DEACTIVATE,
        memberID,
        alarm,
      });
      this.deps.safety.etcd?.askedForEnd();
      const ended = await this.#call(node, `end of alarm ${alarm} of ${memberID}`, Alarm.path, end);
      if (ended.bytes !== undefined) this.counts.alarmsEnded++;
    }
  }
}
