/**
 * A shadow that follows: it compares at each compaction and at intervals, looks for what differs,
 * and keeps the report.
 *
 *     a compaction was applied, or the time has come   compare (src/compare.ts)
 *     a hash differs                                   the first revision by halving, then its key
 *     every 10 s                                       the members' status, the report's file
 */
import type { Client } from "@quorate/client";
import type { Clock, Logger } from "@quorate/host";
import { sleep } from "@quorate/host";
import { askHashes, type Member, QUORATE_VERSION } from "@quorate/member";
import type { MetricRegistry } from "@quorate/metrics";
import { fromLatin1, idToHex, KeyValue, RangeRequest, type raftpb, toLatin1 } from "@quorate/proto";
import {
  type AppliedEntry,
  applyRange,
  type Store,
  type Member as StoredMember,
} from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import {
  type Comparison,
  compare,
  type Different,
  firstDifferent,
  type HashSource,
} from "../src/compare.ts";
import { Coverage } from "../src/coverage.ts";
import { type KeyReader, locate, type PageRequest } from "../src/locate.ts";
import { keyText, OtherwiseCounter, type OtherwiseLimits } from "../src/otherwise.ts";
import {
  type FoundDifference,
  type Phase,
  type ReportedMember,
  type ShadowReport,
  verdictOf,
} from "../src/report.ts";
import type { ShadowState } from "./state-file.ts";

const TURN_MS = 1000;
const STATUS_EVERY_MS = 10_000;
const HASH_TIMEOUT_MS = 60_000;
const STATUS_TIMEOUT_MS = 5000;

export interface FollowingOptions {
  readonly name: string;
  readonly everyMs: number;
  /** Keys are shown in hexadecimal. */
  readonly isHex: boolean;
  readonly limits: OtherwiseLimits;
}

export interface FollowingParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly call: PeerCall;
  /** A client of one member's endpoint; the caller closes it. */
  readonly clientAt: (endpoint: string) => Promise<Client>;
  /** Called when there is something new to write down. */
  readonly changed: () => void;
}

export class Following {
  phase: Phase = "joining";
  reason = "";
  readonly #options: FollowingOptions;
  readonly #parts: FollowingParts;
  readonly #startedMs: number;
  readonly #otherwise: OtherwiseCounter;
  readonly #state: ShadowState;
  #member: Member | undefined;
  #coverage: Coverage | undefined;
  #difference: FoundDifference | null;
  #counts = { equal: 0, different: 0, none: 0, lastProblem: "" };
  #compactions = { applied: 0, equal: 0 };
  #isCompactionDue = false;
  #comparedMs = Number.NEGATIVE_INFINITY;
  #statusMs = Number.NEGATIVE_INFINITY;
  #members: readonly ReportedMember[] = [];
  #leaderIndex = 0;
  #rate = 0;
  #rated = { atMs: 0, requests: 0 };
  #isStopped = false;

  constructor(options: FollowingOptions, parts: FollowingParts, state: ShadowState) {
    this.#options = options;
    this.#parts = parts;
    this.#state = state;
    this.#startedMs = state.startedMs;
    this.#difference = state.difference;
    this.#otherwise = new OtherwiseCounter(options.limits);
  }

  /** An entry was applied; from the member's observer. */
  readonly entryApplied = (entry: raftpb.Entry, applied: AppliedEntry, store: Store): void => {
    this.#otherwise.applied(entry, applied, store);
    if (applied.kind !== "compaction" || applied.error !== undefined) return;
    this.#compactions.applied++;
    this.#isCompactionDue = true;
  };

  get difference(): FoundDifference | null {
    return this.#difference;
  }

  /** Client URLs of the voters, by the members' list as it is applied here. */
  get endpoints(): readonly string[] {
    return this.#voters().flatMap(({ clientUrls }) => clientUrls);
  }

  /** What is to be kept over a restart. */
  get progress(): Pick<ShadowState, "firstRevision" | "equalThrough" | "equal" | "difference"> {
    const { first = 0, through = 0, equal = 0 } = this.#coverage ?? {};
    return { firstRevision: first, equalThrough: through, equal, difference: this.#difference };
  }

  /** Begins to follow when the member has what the cluster had at its start. */
  async run(member: Member): Promise<void> {
    this.#member = member;
    await member.ready;
    if (this.#isStopped) return;
    this.phase = "following";
    this.#rated = { atMs: this.#parts.clock.monotonicMs(), requests: 0 };
    while (!this.#isStopped) {
      await this.#turn().catch((error: Error) => {
        this.#parts.logger.warn("a turn of the shadow failed", { error: error.message });
      });
      if (!this.#isStopped) await sleep(this.#parts.clock, TURN_MS);
    }
  }

  /** Compares once more, where it has followed. */
  async last(): Promise<void> {
    this.#isStopped = true;
    if (this.#member === undefined || this.phase === "joining") return;
    await this.#compare().catch(() => {});
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #turn(): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#statusMs >= STATUS_EVERY_MS) {
      this.#statusMs = nowMs;
      await this.#look();
      this.#parts.changed();
    }
    const mvcc = this.#mvcc();
    if (this.#coverage === undefined) {
      const { firstRevision, equalThrough, equal } = this.#state;
      const first = firstRevision > 0 ? firstRevision : mvcc.currentRevision;
      this.#coverage =
        firstRevision > 0 ? new Coverage(first, equalThrough, equal) : new Coverage(first);
    }
    const isCompacted = this.#isCompactionDue;
    if (!isCompacted && nowMs - this.#comparedMs < this.#options.everyMs) return;
    this.#isCompactionDue = false;
    this.#comparedMs = nowMs;
    const found = await this.#compare();
    if (isCompacted && found.kind === "equal") this.#compactions.equal++;
  }

  async #compare(): Promise<Comparison> {
    const found = await compare(this.#source);
    this.#counts[found.kind]++;
    if (found.kind === "equal") this.#coverage?.add(found.compactRevision, found.revision);
    else if (found.kind === "none") this.#counts.lastProblem = found.why;
    else if (this.#difference === null) await this.#found(found);
    this.#parts.changed();
    return found;
  }

  async #found(found: Different): Promise<void> {
    const { member, revision, compactRevision, ownHash, otherHash } = found;
    const voters = this.#voters();
    const answers = await this.#source.ask(voters, revision);
    const common = {
      member: member.name || idToHex(member.id),
      memberId: idToHex(member.id),
      hashRevision: revision,
      compactRevision,
      hash: ownHash,
      otherHash,
      equalVoters: answers.filter(({ hash }) => hash?.hash === ownHash).length,
      at: this.#time(),
    };
    this.#difference = { ...common, seen: "the key is looked for" };
    this.#parts.logger.error("the history of a voter differs", { ...common });
    this.#parts.changed();
    const at = await firstDifferent(this.#source, found);
    if (at === undefined) {
      this.#difference = { ...common, seen: "it compacted before the revision was found" };
      return;
    }
    this.#difference = { ...common, revision: at, seen: "the key is looked for" };
    this.#difference = { ...common, ...(await this.#keyAt(member, at, compactRevision)) };
    this.#parts.logger.error("the first difference", { ...this.#difference });
  }

  /** The key that differs at a revision, where the voter lets it be read. */
  async #keyAt(
    member: StoredMember,
    revision: number,
    compactRevision: number,
  ): Promise<Pick<FoundDifference, "revision" | "key" | "seen">> {
    const [endpoint] = member.clientUrls;
    if (endpoint === undefined) return { revision, seen: "the voter has no client URL" };
    try {
      const client = await this.#parts.clientAt(endpoint);
      try {
        const theirs = readerOf(client);
        // A deletion on one side shows in no list of what was changed.
        const found =
          (revision > compactRevision
            ? await locate(this.#own, theirs, { revision, only: revision })
            : undefined) ?? (await locate(this.#own, theirs, { revision }));
        if (found === undefined) return { revision, seen: "no read shows which key it is" };
        const key = keyText(found.key, this.#options.isHex);
        return { revision: found.revision, key, seen: found.seen };
      } finally {
        client.close();
      }
    } catch (error) {
      return { revision, seen: `the key was not found: ${(error as Error).message}` };
    }
  }

  #mvcc() {
    if (this.#member === undefined) throw new Error("the member has not started");
    return this.#member.store.mvcc;
  }

  #voters(): readonly StoredMember[] {
    return (
      this.#member?.store.membership
        .members()
        .filter(({ id, isLearner }) => !isLearner && id !== this.#member?.id) ?? []
    );
  }

  readonly #source: HashSource = {
    own: (revision) => this.#mvcc().hashKV(revision),
    voters: () => this.#voters(),
    ask: (members, revision) => askHashes(this.#parts.call, members, revision, HASH_TIMEOUT_MS),
    pause: (delayMs) => sleep(this.#parts.clock, delayMs),
  };

  readonly #own: KeyReader = {
    page: async (request) => this.#ownPage(request),
  };

  async #ownPage({ revision, from, limit, only }: PageRequest): Promise<KeyValue[]> {
    const mvcc = this.#mvcc();
    if (only === undefined) {
      const request = RangeRequest.create({
        key: fromLatin1(from),
        rangeEnd: fromLatin1("\0"),
        revision,
        limit,
      });
      return applyRange(mvcc, request).kvs.map((record) => KeyValue.decode(record as never));
    }
    const changed: KeyValue[] = [];
    for await (const { changes } of mvcc.history(only, only))
      for (const { record, deleted, key } of changes)
        if (!deleted && key >= from) changed.push(KeyValue.decode(record));
    const last = new Map(changed.map((one) => [toLatin1(one.key), one]));
    return [...last.values()]
      .sort((a, b) => (toLatin1(a.key) < toLatin1(b.key) ? -1 : 1))
      .slice(0, limit);
  }

  /** The status of all members, over their client ports. */
  async #look(): Promise<void> {
    const members = this.#member?.store.membership.members() ?? [];
    this.#members = await Promise.all(
      members.filter(({ id }) => id !== this.#member?.id).map((member) => this.#statusOf(member)),
    );
    const { clock } = this.#parts;
    const requests = [...this.#otherwise.kinds.values()].reduce((sum, one) => sum + one, 0);
    const seconds = (clock.monotonicMs() - this.#rated.atMs) / 1000;
    if (seconds > 0) this.#rate = (requests - this.#rated.requests) / seconds;
    this.#rated = { atMs: clock.monotonicMs(), requests };
  }

  async #statusOf({ id, name, clientUrls, isLearner }: StoredMember): Promise<ReportedMember> {
    const unknown = {
      name,
      id: idToHex(id),
      version: "",
      isLeader: this.#member?.leader === id,
      isLearner,
      appliedIndex: 0,
      databaseBytes: 0,
      databaseInUseBytes: 0,
      quotaBytes: 0,
    };
    const [endpoint] = clientUrls;
    if (endpoint === undefined) return { ...unknown, problem: "it has no client URL" };
    try {
      const client = await this.#parts.clientAt(endpoint);
      try {
        const status = await client.status(endpoint, { timeoutMs: STATUS_TIMEOUT_MS });
        if (unknown.isLeader) this.#leaderIndex = status.raftIndex;
        return {
          ...unknown,
          version: status.version,
          appliedIndex: status.raftAppliedIndex,
          databaseBytes: status.dbSize,
          databaseInUseBytes: status.dbSizeInUse,
          quotaBytes: status.dbSizeQuota,
          problem: "",
        };
      } finally {
        client.close();
      }
    } catch (error) {
      return { ...unknown, problem: (error as Error).message };
    }
  }

  #time(): string {
    return new Date(this.#parts.clock.wallMs()).toISOString();
  }

  report(): ShadowReport {
    const { clock } = this.#parts;
    const member = this.#member;
    const store = member?.store;
    const first = this.#coverage?.first ?? this.#state.firstRevision;
    const revisions = {
      first,
      current: store?.mvcc.currentRevision ?? 0,
      compacted: Math.max(0, store?.mvcc.compactRevision ?? 0),
      equal: this.#coverage?.equal ?? this.#state.equal,
      equalThrough: this.#coverage?.through ?? this.#state.equalThrough,
    };
    const appliedIndex = member?.appliedIndex ?? 0;
    return {
      verdict: verdictOf({ difference: this.#difference, revisions }),
      phase: this.phase,
      reason: this.reason,
      version: QUORATE_VERSION,
      name: this.#options.name,
      memberId: this.#state.memberId,
      clusterId: member === undefined ? "" : idToHex(member.clusterId),
      startedAt: new Date(this.#startedMs).toISOString(),
      writtenAt: this.#time(),
      followedSeconds: Math.round((clock.wallMs() - this.#startedMs) / 1000),
      revisions,
      comparisons: { ...this.#counts },
      compactions: { ...this.#compactions },
      difference: this.#difference,
      store: {
        appliedIndex,
        lagEntries: Math.max(0, this.#leaderIndex - appliedIndex),
        keys: store?.mvcc.keyCount ?? 0,
        liveBytes: store?.liveBytes ?? 0,
        keyBytes: store?.mvcc.keyBytes ?? 0,
      },
      requests: Object.fromEntries([...this.#otherwise.kinds].sort()),
      requestsPerSecond: this.#rate,
      otherwise: this.#otherwise.all,
      members: this.#members,
    };
  }

  /** Declares what the page shows as metrics. */
  declare(registry: MetricRegistry): void {
    const gauge = (name: string, help: string, read: () => number): void =>
      void registry.gauge(`quorate_shadow_${name}`, help, read);
    gauge(
      "equal_revisions",
      "Revisions that were found equal with the voters'.",
      () => this.report().revisions.equal,
    );
    gauge(
      "equal_through_revision",
      "The last revision that was found equal.",
      () => this.report().revisions.equalThrough,
    );
    gauge("differs", "1 if a voter's history was found to differ, else 0.", () =>
      this.#difference === null ? 0 : 1,
    );
    gauge(
      "lag_entries",
      "Entries of the leader's log that are not applied here.",
      () => this.report().store.lagEntries,
    );
    registry.readCounter(
      "quorate_shadow_comparisons_total",
      "Comparisons of hashes that at least one voter could take part in.",
      () => this.#counts.equal + this.#counts.different,
    );
    registry.readCounter(
      "quorate_shadow_otherwise_total",
      "Requests of the log that Quorate would have refused or done otherwise.",
      () => this.#otherwise.all.reduce((sum, { count }) => sum + count, 0),
    );
  }
}

/** Reads of one voter alone, without a round through the cluster. */
function readerOf(client: Client): KeyReader {
  return {
    async page({ revision, from, limit, only }) {
      const { kvs } = await client.get(fromLatin1(from), {
        fromKey: true,
        revision,
        limit,
        serializable: true,
        ...(only === undefined ? {} : { minModRevision: only, maxModRevision: only }),
      });
      return kvs;
    },
  };
}
