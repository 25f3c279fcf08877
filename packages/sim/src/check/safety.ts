/**
 * What has to hold inside of the cluster, looked at from outside of its members:
 *
 *   SIM-1 election safety       one leader a term: who sends appends, heartbeats or snapshots of a
 *                               term
 *   SIM-2 votes                 a member that said yes in a term says it to no other in that
 *                               term, whatever crashes
 *   SIM-3 log matching          an entry of one index and term is the same wherever it is sent
 *   SIM-4 state machine safety  what is applied at an index is applied everywhere at that index,
 *                               and comes to the same answer
 *   SIM-5 answers               each applied request answers what the model answers
 *   SIM-6 consistent index      an opened store holds exactly the state at the index that it names,
 *                               and no index from the future
 *   SIM-7 equal stores          members at one index have equal hashes
 *   AUTH-1 to AUTH-3            users and roles (users/auth-book.ts)
 *   SIM-12 what is malformed    no entry is in the log that fails its checks, unless it was put
 *                               there on purpose (hostile-clients.ts)
 */
import {
  CompactionRequest,
  crc32c,
  EMPTY,
  type ErrorName,
  fromUtf8,
  InternalRaftRequest,
  LeaseCheckpointRequest,
  RangeRequest,
  raftpb,
  toLatin1,
} from "@quorate/proto";
import {
  type Alarm,
  type AppliedEntry,
  applyRange,
  checkEntryData,
  type Store,
} from "@quorate/store";
import { deleteAnswer, putAnswer, requestOfEntry, toModelKv, txnAnswer } from "../base/codec.ts";
import { type Answer, type ModelRequest, ModelState } from "../base/model.ts";
import { difference, kvFields } from "../base/model-difference.ts";
import { violate } from "../base/violation.ts";
import { AuthBook, unwrapped } from "../users/auth-book.ts";
import type { AuthModel } from "../users/auth-model.ts";
import { Acknowledged } from "./acknowledged.ts";
import { AlarmBook, refusesWhenCorrupt } from "./alarms.ts";
import type { CorruptionCheck } from "./corruption.ts";
import type { EtcdRules } from "./etcd-rules.ts";
import { KeptLogCheck } from "./kept-log.ts";
import type { LeaseCheck } from "./lease-lives.ts";
import { PromotionCheck } from "./promotions.ts";

export { Violation, violate } from "../base/violation.ts";

interface AppliedIndex {
  readonly term: number;
  readonly type: number;
  readonly data: Uint8Array;
  readonly digest: string;
  /** The revision after it. */
  readonly revision: number;
}

/** What a restored cluster begins with. */
export interface Beginning {
  readonly index: number;
  readonly state: ModelState;
  readonly compactRevision: number;
  readonly alarms: readonly Alarm[];
  readonly users: AuthModel;
}

const { MessageType } = raftpb;
const FROM_LEADERS = new Set<number>([
  MessageType.MsgApp,
  MessageType.MsgHeartbeat,
  MessageType.MsgSnap,
]);
/** Those of the members of all runs. */
const LIMITS = { maxTxnOps: 128, versionProblem: () => undefined };
const ALL_KEYS = RangeRequest.create({ key: new Uint8Array([0]), rangeEnd: new Uint8Array([0]) });

/**
 * Whether a checkpoint notes what is left of a lease, and does not only take back what was noted.
 */
function notesTime(bytes: Uint8Array): boolean {
  return LeaseCheckpointRequest.decode(bytes).checkpoints.some((one) => one.remaining_TTL > 0);
}

export class Safety {
  readonly #leaders = new Map<number, string>();
  /** Terms with leaders that are lost. */
  #lostTerms = 0;
  readonly #votes = new Map<string, bigint>();
  /** Their contents, by index, then by term. */
  readonly #entries = new Map<number, Map<number, number>>();
  /** By index; 0 is the beginning. */
  readonly #applied: AppliedIndex[] = [{ term: 0, type: 0, data: EMPTY, digest: "", revision: 1 }];
  /** By revision. */
  readonly #states: ModelState[] = [new ModelState(0), new ModelState(1)];

  /** By revision: what made it. */
  readonly #requests = new Map<number, ModelRequest>();
  readonly #leases: LeaseCheck;
  readonly alarms: AlarmBook;
  readonly users = new AuthBook();
  /** The revision that was compacted last, and all that ever were. */
  compactRevision = 0;
  readonly compacted = new Set<number>();

  readonly #removed = new Set<bigint>();
  readonly acknowledged = new Acknowledged();
  readonly promotions = new PromotionCheck(this.acknowledged);
  /** Entries that noted what is left of some lease. */
  checkpoints = 0;
  /** Entries that were proposed unchecked, as text. */
  readonly #poisoned = new Set<string>();

  readonly keptLog: KeptLogCheck;
  /** Undefined in a cluster without members of etcd. */
  readonly etcd: EtcdRules | undefined;

  /**
   * @param now the world's time in milliseconds
   * @param etcd the rules of a cluster with members of etcd
   */
  constructor(
    leases: LeaseCheck,
    corruption: CorruptionCheck,
    now: () => number,
    etcd?: EtcdRules,
  ) {
    this.etcd = etcd;
    this.keptLog = new KeptLogCheck(now);
    this.#leases = leases;
    this.alarms = new AlarmBook((memberId) => corruption.raised(memberId));
  }

  /** The request that made a revision, undefined where there is none. */
  requestAt(revision: number): ModelRequest | undefined {
    return this.#requests.get(revision);
  }

  /** The state at a revision that was made. */
  stateAt(revision: number): ModelState | undefined {
    return this.#states[revision];
  }

  /** The term of an entry that was applied. */
  termAt(index: number): number | undefined {
    return this.#applied[index]?.term;
  }

  /**
   * Members are lost for good, with what they alone knew: terms that they led in, votes, entries
   * that no member applied.
   */
  forgetLost(): void {
    this.#lostTerms += this.#leaders.size;
    this.#leaders.clear();
    this.#votes.clear();
    this.#entries.clear();
  }

  /** The revision after an entry; undefined if no member has applied it. */
  revisionAt(index: number): number | undefined {
    return this.#applied[index]?.revision;
  }

  /** The entry that made a revision; undefined if no member has applied it. */
  indexOf(revision: number): number | undefined {
    let low = 0;
    let high = this.#applied.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#applied[middle].revision < revision) low = middle + 1;
      else high = middle;
    }
    return low < this.#applied.length ? low : undefined;
  }

  /**
   * A cluster begins with this state, after the entries up to `index`, which no member applies.
   * Before anything else.
   */
  begin({ index, state, compactRevision, alarms, users }: Beginning): void {
    for (let i = 0; i <= index; i++)
      this.#applied[i] = { term: 0, type: 0, data: EMPTY, digest: "", revision: state.revision };
    this.#states[state.revision] = state;
    this.compactRevision = compactRevision;
    this.users.begin(users);
    for (const { memberId, type } of alarms) this.alarms.begin(memberId, type);
  }

  /** This data was proposed unchecked. */
  poison(data: Uint8Array): void {
    this.#poisoned.add(toLatin1(data));
  }

  /** Whether a member's removal from the cluster was applied somewhere. */
  isRemoved(memberId: bigint): boolean {
    return this.#removed.has(memberId);
  }

  /** Entries that were applied somewhere. */
  get lastIndex(): number {
    return this.#applied.length - 1;
  }

  get elections(): number {
    return this.#lostTerms + this.#leaders.size;
  }

  get lastState(): ModelState {
    return this.#states[this.#states.length - 1];
  }

  /** A message leaves a member. */
  sent(name: string, message: raftpb.Message): void {
    const { type, term } = message;
    this.acknowledged.sent(message);
    if (FROM_LEADERS.has(type)) {
      const known = this.#leaders.get(term);
      if (known === undefined) this.#leaders.set(term, name);
      else if (known !== name) violate("SIM-1", `${known} and ${name} lead in term ${term}`);
    }
    if (type === MessageType.MsgVoteResp && !message.reject) {
      // A machine may be another member's after a while.
      const key = `${message.from} ${term}`;
      const known = this.#votes.get(key);
      if (known === undefined) this.#votes.set(key, message.to);
      else if (known !== message.to)
        violate("SIM-2", `${name} votes for ${known} and ${message.to} in term ${term}`);
    }
    if (type !== MessageType.MsgApp) return;
    for (const entry of message.entries) {
      const content = crc32c(entry.type, entry.data);
      let terms = this.#entries.get(entry.index);
      if (terms === undefined) this.#entries.set(entry.index, (terms = new Map()));
      const known = terms.get(entry.term);
      if (known === undefined) terms.set(entry.term, content);
      else if (known !== content)
        violate("SIM-3", `${name} sends another entry ${entry.index} of term ${entry.term}`);
    }
  }

  /**
   * A member has applied an entry. @param isAltered its store was made to differ: its answer is not
   * looked at
   */
  applied(
    name: string,
    store: Store,
    entry: raftpb.Entry,
    applied: AppliedEntry | undefined,
    isAltered = false,
  ): void {
    const { index, term, type } = entry;
    const revision = store.mvcc.currentRevision;
    const answer = applied === undefined ? undefined : answerOf(applied);
    const outcome = answer === undefined ? String(applied?.error?.message) : outcomeOf(answer);
    const digest = digestOf(outcome);
    const known = this.#applied[index];
    if (known !== undefined) {
      if (known.term !== term || known.type !== type || !equal(known.data, entry.data)) {
        violate(
          "SIM-4",
          `${name} applies another entry at ${index}: term ${term} where ${known.term} was applied`,
        );
      }
      if (known.revision !== revision)
        violate(
          "SIM-4",
          `${name} is at revision ${revision} after ${index}, others at ${known.revision}`,
        );
      if (known.digest !== digest && !isAltered)
        violate("SIM-4", `${name} has another answer to ${index}: ${outcome}`);
      this.users.compareAfter(name, store, index);
      return;
    }
    if (index !== this.#applied.length)
      violate(
        "SIM-4",
        `${name} applies ${index}, and no member has applied ${this.#applied.length}`,
      );
    const expected = this.#judge(name, entry, applied, isAltered ? "altered" : answer, revision);
    this.#applied.push({
      term,
      type,
      data: entry.data.slice(),
      digest: isAltered ? digestOf(expected ?? outcome) : digest,
      revision,
    });
    this.users.compareAfter(name, store, index);
  }

  /** The first to apply an entry is compared with the model. Returns what the model answers. */
  #judge(
    name: string,
    entry: raftpb.Entry,
    applied: AppliedEntry | undefined,
    answer: Answer | undefined | "altered",
    revision: number,
  ): string | undefined {
    let outcome: string | undefined;
    const state = this.lastState;
    let next = state;
    if (entry.type === raftpb.EntryType.EntryConfChange) {
      const { type, nodeId } = raftpb.ConfChange.decode(entry.data);
      if (type === raftpb.ConfChangeType.ConfChangeRemoveNode) this.#removed.add(nodeId);
    }
    const isRequest =
      entry.type === raftpb.EntryType.EntryNormal &&
      entry.data.length > 0 &&
      this.etcd?.v2Of(entry) === undefined;
    const malformed = isRequest ? this.#malformed(name, entry) : undefined;
    const found =
      isRequest && malformed === undefined
        ? unwrapped(InternalRaftRequest.decode(entry.data))
        : undefined;
    const internal = found?.internal;
    const request = internal === undefined ? undefined : requestOfEntry(internal);
    if (internal?.leaseCheckpoint !== undefined && notesTime(internal.leaseCheckpoint))
      this.checkpoints++;
    const refusal =
      malformed ?? (found === undefined ? undefined : this.#refusal(state, found, entry, request));
    if (applied?.error?.code !== refusal) {
      violate(
        "SIM-5",
        `${name} at index ${entry.index}: ${applied?.error?.message ?? "no error"}, expected ${refusal ?? "none"}`,
      );
    }
    if (
      answer !== undefined &&
      (answer !== "altered" || (request !== undefined && applied?.response !== undefined))
    ) {
      if (request === undefined)
        violate("SIM-5", `${name} answers ${entry.index}, which is no request of a client`);
      const expected = state.apply(request);
      next = expected.next;
      if (next !== state) this.#requests.set(next.revision, request);
      outcome = outcomeOf(expected.answer);
      const wrong = answer === "altered" ? undefined : difference(expected.answer, answer);
      if (wrong !== undefined)
        violate("SIM-5", `${name} at index ${entry.index}, ${JSON.stringify(request)}: ${wrong}`);
    }
    if (revision !== next.revision)
      violate(
        "SIM-5",
        `${name} is at revision ${revision} after ${entry.index}, the model at ${next.revision}`,
      );
    if (next !== state) this.#states.push(next);
    return outcome;
  }

  /**
   * SIM-12. The error that an entry which does not decode must come to; undefined for one that
   * decodes.
   */
  #malformed(
    name: string,
    { index, data }: raftpb.Entry,
  ): "InvalidRequest" | "Corrupt" | undefined {
    try {
      checkEntryData(data, LIMITS);
      return undefined;
    } catch (error) {
      if (!this.#poisoned.has(toLatin1(data))) {
        violate(
          "SIM-12",
          `${name} applies ${index}, which fails its checks: ${error instanceof Error ? error.message : error}`,
        );
      }
    }
    try {
      // An alarm refuses a request by its kind, before it is looked into.
      return this.alarms.isCorrupt && refusesWhenCorrupt(InternalRaftRequest.decode(data))
        ? "Corrupt"
        : "InvalidRequest";
    } catch {
      return "InvalidRequest";
    }
  }

  /** The error that a request must come to. */
  #refusal(
    state: ModelState,
    { internal, identity }: ReturnType<typeof unwrapped>,
    { term, index }: raftpb.Entry,
    request: ModelRequest | undefined,
  ): ErrorName | undefined {
    const keysOf = (lease: string) => (this.#leases.exists(lease) ? state.keysOf(lease) : []);
    const unpermitted = this.users.refusal(internal, identity, keysOf);
    // A request that is refused for its user changes no alarm; any other is refused for them first.
    const isAlarm = internal.alarm !== undefined;
    if (isAlarm && unpermitted !== undefined) return unpermitted;
    const alarmed = this.alarms.applied(internal, request);
    if (alarmed !== undefined) return alarmed;
    if (unpermitted !== undefined) return unpermitted;
    const refusedAuth = this.users.applied(internal, index);
    if (refusedAuth !== undefined) return refusedAuth;
    if (internal.compaction !== undefined) {
      const { revision } = CompactionRequest.decode(internal.compaction);
      if (revision <= this.compactRevision) return "Compacted";
      if (revision > state.revision) return "FutureRev";
      this.compactRevision = revision;
      this.compacted.add(revision);
      return undefined;
    }
    const refused =
      request === undefined ? undefined : state.refusal(request, (id) => this.#leases.exists(id));
    if (refused !== undefined) return refused;
    return this.#leases.applied(internal, term, index);
  }

  /**
   * A member has opened a store, at its start or after a snapshot. @param isAltered it was made to
   * differ
   */
  opened(name: string, store: Store, isAltered = false): void {
    const { index } = store.position;
    const known = this.#applied[index];
    if (known === undefined)
      violate(
        "SIM-6",
        `${name} opens a store at ${index}, and no member has applied more than ${this.lastIndex}`,
      );
    const revision = store.mvcc.currentRevision;
    if (revision !== known.revision)
      violate(
        "SIM-6",
        `${name}: the store at ${index} is at revision ${revision}, not ${known.revision}`,
      );
    this.users.opened(name, store, index);
    const wrong = isAltered ? undefined : this.contentDiffers(store);
    if (wrong !== undefined) violate("SIM-6", `${name}: the store at ${index}, ${wrong}`);
  }

  /**
   * How a store's keys differ from the model's at its newest revision, or at another; undefined if
   * they do not.
   */
  contentDiffers(
    { mvcc }: Pick<Store, "mvcc">,
    revision = mvcc.currentRevision,
  ): string | undefined {
    const { kvs } = applyRange(
      mvcc,
      revision === mvcc.currentRevision ? ALL_KEYS : { ...ALL_KEYS, revision },
    );
    const actual = JSON.stringify(kvs.map(toModelKv).map(kvFields));
    const state = this.#states[revision];
    const expected = JSON.stringify(state.range({ key: "\0", end: "\xff" }).map(kvFields));
    return actual === expected ? undefined : `keys are ${actual}, not ${expected}`;
  }
}

/** The answer of what was applied, as the model has it; undefined for other kinds and errors. */
function answerOf({ kind, response }: AppliedEntry): Answer | undefined {
  if (response === undefined) return undefined;
  const revision = response.header?.revision ?? 0;
  if (kind === "put") return { revision, succeeded: true, answers: [putAnswer(response)] };
  if (kind === "deleteRange")
    return { revision, succeeded: true, answers: [deleteAnswer(response)] };
  if (kind === "leaseRevoke") return { revision, succeeded: true, answers: [{ kind: "revoke" }] };
  if (kind === "txn") return txnAnswer(response);
  return undefined;
}

/** Answers up to so many characters are kept as they are, longer ones as a digest. */
const MAX_PLAIN_OUTCOME = 200;

/** An answer as text: equal for equal answers. */
function outcomeOf(answer: Answer): string {
  const [first] = answer.answers;
  const isPlain = answer.answers.length === 1 && first.kind !== "range" && !("previous" in first);
  if (!isPlain) return JSON.stringify(answer);
  return `${answer.revision} ${answer.succeeded} ${first.kind} ${first.kind === "delete" ? first.deleted : ""}`;
}

/** A short text: equal for equal outcomes. */
function digestOf(outcome: string): string {
  return outcome.length < MAX_PLAIN_OUTCOME
    ? outcome
    : `${crc32c(0, fromUtf8(outcome))} ${outcome.length}`;
}

/** Whether two texts of bytes are equal. */
function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
