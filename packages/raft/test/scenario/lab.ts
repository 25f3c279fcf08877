/**
 * The bench on which scenarios run: members with disks and state machines, and a network that keeps
 * messages unless the scenario says otherwise.
 *
 *   cluster N [option ...]     N voters that have applied their bootstrap entries. Options:
 *                              election=10 heartbeat=1 message=BYTES
 *                              window=MESSAGES windowbytes=BYTES uncommitted=BYTES apply=BYTES
 *                              reads=N prevote checkquorum lease.
 *                              Member k times out after election + k - 1 ticks, unless changed by
 *                              "timeout".
 *   member ID                  one more member, with nothing on disk
 *   log-of ID TERM/N ...       (before anything else happens) its log: N entries of each TERM after
 *                              the bootstrap entries, all durable
 *   timeout ID TICKS           its election timeout from its next change of role on
 *   tick ID [N]                campaign ID        forget ID
 *   propose ID WORD ...        bulk ID COUNT BYTES
 *   conf ID [implicit|explicit] vN lN rN uN ... | leave
 *   conf-v1 ID vN              read ID WORD       transfer ID TO
 *   unreachable ID OF          snapshot-report ID OF ok|failed
 *   compact ID INDEX
 *   ready ID                   takes one Ready and shows it; what it writes and applies waits
 *   sync ID [N]                makes its first N writes (or all) durable and sends what waited for
 *                              that
 *   apply ID                   applies what was handed out
 *   run ID                     ready, sync and apply until nothing is left, shown in short
 *   deliver [FROM->TO] [TYPE]  delivers the messages on their way that match, in order; drop: the
 *                              same, without delivery
 *   settle [quiet]             run and deliver for everybody until nothing is left
 *   isolate ID                 loses all messages from and to it, from now on; heal: no more
 *   crash ID [N]               stops it; of what was not synced the first N records survive (none).
 *                              restart ID
 *   step FROM->TO TYPE [field=value ...]   a message made by hand; entries=INDEX/TERM,..
 *                                          snapshot=INDEX/TERM:VOTER,..
 *   status [ID ...]            progress ID       log ID       network
 */
import { fromLatin1, InvariantError, raftpb } from "@quorate/proto";
import { bootstrapEntries, confChangeOf, Raft, type RaftConfig, type Ready } from "../../index.ts";
import { type DiskRecord, emptyConfState, SimDisk } from "../../testing/index.ts";
import {
  showConfState,
  showEntry,
  showMessage,
  showProgress,
  showReady,
  showStatus,
} from "./show.ts";

interface LabMember {
  readonly id: bigint;
  readonly disk: SimDisk;
  raft: Raft | undefined;
  writes: Ready[];
  applies: Ready[];
  timeoutTicks: number;
  /** What the state machine has applied, and the configuration then. */
  applied: number;
  confState: raftpb.ConfState;
}

const confKinds: Record<string, raftpb.ConfChangeType> = { v: 0, r: 1, u: 2, l: 3 };

export class Lab {
  readonly #members = new Map<bigint, LabMember>();
  readonly #options = new Map<string, string>();
  readonly #isolated = new Set<bigint>();
  #network: raftpb.Message[] = [];

  /** Runs a command; returns its output. */
  run(command: string): string {
    const [name, ...args] = command.trim().split(/\s+/);
    const action = this.#commands[name];
    if (action === undefined) throw new Error(`no such command: ${name}`);
    try {
      return action(args).join("\n");
    } catch (error) {
      if (error instanceof InvariantError) return `broken: ${error.message}`;
      throw error;
    }
  }

  readonly #commands: Record<string, (args: string[]) => string[]> = {
    cluster: (args) => this.#cluster(args),
    member: ([id]) => this.#addMember(BigInt(id), []),
    "log-of": ([id, ...runs]) => this.#logOf(this.#member(id), runs),
    timeout: ([id, ticks]) => {
      this.#member(id).timeoutTicks = Number(ticks);
      return [];
    },
    tick: ([id, count]) => {
      for (let i = 0; i < Number(count ?? 1); i++) this.#raft(id).tick();
      return [];
    },
    campaign: ([id]) => {
      this.#raft(id).campaign();
      return [];
    },
    forget: ([id]) => {
      this.#raft(id).forgetLeader();
      return [];
    },
    propose: ([id, ...words]) => [this.#raft(id).propose(words.map(fromLatin1))],
    bulk: ([id, count, bytes]) => [
      this.#raft(id).propose(
        Array.from({ length: Number(count) }, () => fromLatin1("x".repeat(Number(bytes)))),
      ),
    ],
    conf: ([id, ...words]) => [this.#raft(id).proposeConfChange(parseConfChange(words))],
    "conf-v1": ([id, word]) => {
      const [{ type, nodeId }] = parseConfChange([word]).changes;
      return [this.#raft(id).proposeConfChange(raftpb.ConfChange.create({ type, nodeId }))];
    },
    read: ([id, word]) => [this.#raft(id).readIndex(fromLatin1(word))],
    transfer: ([id, to]) => [this.#raft(id).transferLeadership(BigInt(to))],
    unreachable: ([id, of]) => {
      this.#raft(id).reportUnreachable(BigInt(of));
      return [];
    },
    "snapshot-report": ([id, of, how]) => {
      this.#raft(id).reportSnapshot(BigInt(of), how === "ok");
      return [];
    },
    compact: ([id, index]) => {
      const member = this.#member(id);
      const metadata = {
        index: Number(index),
        term: this.#raft(id).termOf(Number(index))!,
        confState: member.confState,
      };
      this.#raft(id).compact(metadata.index, metadata.confState);
      member.disk.write(Number.MAX_SAFE_INTEGER, [{ kind: "mark", metadata }]);
      member.disk.saveBackend({ applied: member.applied, hash: 0, confState: member.confState });
      return [];
    },
    ready: ([id]) =>
      this.#raft(id).hasReady() ? showReady(this.#takeReady(this.#member(id))) : ["no ready"],
    sync: ([id, count]) =>
      this.#sync(this.#member(id), count === undefined ? undefined : Number(count)),
    apply: ([id]) => this.#apply(this.#member(id)),
    run: ([id]) => this.#runMember(this.#member(id)),
    deliver: (args) => this.#take(args).flatMap((message) => this.#deliver(message)),
    drop: (args) => this.#take(args).map(showMessage),
    settle: ([how]) => {
      const lines = this.#settle();
      return how === "quiet" ? [] : lines;
    },
    isolate: ([id]) => {
      this.#isolated.add(BigInt(id));
      return [];
    },
    heal: () => {
      this.#isolated.clear();
      return [];
    },
    crash: ([id, survivors]) => {
      const member = this.#member(id);
      member.disk.crash(Number(survivors ?? 0));
      member.raft = undefined;
      return [];
    },
    restart: ([id]) => {
      this.#start(this.#member(id));
      return [showStatus(this.#raft(id).status())];
    },
    step: ([way, type, ...fields]) => this.#step(way, type, fields),
    status: (ids) =>
      (ids.length === 0 ? [...this.#members.keys()].map(String) : ids).map((id) =>
        showStatus(this.#raft(id).status()),
      ),
    progress: ([id]) => this.#raft(id).status().progress.map(showProgress),
    log: ([id]) => this.#log(this.#member(id)),
    network: () => this.#network.map(showMessage),
  };

  #member(id: string | bigint): LabMember {
    const member = this.#members.get(BigInt(id));
    if (member === undefined) throw new Error(`no member ${id}`);
    return member;
  }

  #raft(id: string | bigint): Raft {
    const { raft } = this.#member(id);
    if (raft === undefined) throw new Error(`member ${id} does not run`);
    return raft;
  }

  #cluster([count, ...options]: string[]): string[] {
    for (const option of options) {
      const [name, value] = option.split("=");
      this.#options.set(name, value ?? "");
    }
    const ids = Array.from({ length: Number(count) }, (_, i) => BigInt(i + 1));
    const entries = bootstrapEntries(ids.map((id) => ({ id, context: fromLatin1("") })));
    const lines = ids.flatMap((id) => this.#addMember(id, entries));
    for (const id of ids) {
      this.#runMember(this.#member(id));
      this.#member(id).disk.saveBackend({
        applied: entries.length,
        hash: 0,
        confState: this.#member(id).confState,
      });
    }
    return lines;
  }

  #addMember(id: bigint, entries: readonly raftpb.Entry[]): string[] {
    const member: LabMember = {
      id,
      disk: new SimDisk(),
      raft: undefined,
      writes: [],
      applies: [],
      timeoutTicks: 0,
      applied: 0,
      confState: emptyConfState,
    };
    const records: DiskRecord[] = entries.map((entry) => ({ kind: "entry", entry }));
    if (entries.length > 0)
      records.push({ kind: "hard", hardState: { term: 1, vote: 0n, commit: entries.length } });
    member.disk.write(0, records);
    member.disk.sync(0);
    this.#members.set(id, member);
    member.timeoutTicks = this.#number("election", 10) + Number(id) - 1;
    this.#start(member);
    return [];
  }

  #number(name: string, otherwise: number): number {
    const value = this.#options.get(name);
    return value === undefined ? otherwise : Number(value);
  }

  #start(member: LabMember): void {
    const maxMessageBytes = this.#number("message", 1 << 20);
    const electionTicks = this.#number("election", 10);
    const config: RaftConfig = {
      id: member.id,
      electionTicks,
      heartbeatTicks: this.#number("heartbeat", 1),
      randomBelow: () => member.timeoutTicks - electionTicks,
      preVote: this.#options.has("prevote"),
      checkQuorum: this.#options.has("checkquorum"),
      readOnly: this.#options.has("lease") ? "lease" : "quorum",
      maxMessageBytes,
      maxInflightMessages: this.#number("window", 256),
      maxInflightBytes: Math.max(this.#number("windowbytes", 1 << 30), maxMessageBytes),
      maxUncommittedBytes: this.#number("uncommitted", 1 << 30),
      maxCommittedBytesPerReady: this.#number("apply", 1 << 20),
      maxPendingReads: this.#number("reads", 100),
    };
    const initial = member.disk.read();
    member.raft = new Raft(config, initial);
    member.writes = [];
    member.applies = [];
    member.applied = initial.applied;
    member.confState = initial.confState!;
  }

  /** Rewrites a member's disk before the scenario begins. */
  #logOf(member: LabMember, runs: string[]): string[] {
    const { confState, applied } = member;
    let index = applied;
    let term = 1;
    const records: DiskRecord[] = [];
    for (const run of runs) {
      const [runTerm, count] = run.split("/").map(Number);
      term = runTerm;
      for (let i = 0; i < count; i++) {
        index++;
        records.push({
          kind: "entry",
          entry: { type: 0, term, index, data: fromLatin1(`e${index}`) },
        });
      }
    }
    records.push({ kind: "hard", hardState: { term, vote: 0n, commit: applied } });
    member.disk.write(0, records);
    member.disk.sync(0);
    member.disk.saveBackend({ applied, hash: 0, confState });
    this.#start(member);
    return [];
  }

  #takeReady(member: LabMember): Ready {
    const ready = member.raft!.ready();
    const records: DiskRecord[] = [];
    if (ready.snapshot !== undefined) {
      const { metadata } = ready.snapshot;
      records.push({
        kind: "snapshot",
        metadata,
        state: { applied: metadata.index, hash: 0, confState: metadata.confState },
      });
    }
    for (const entry of ready.entries) records.push({ kind: "entry", entry });
    if (ready.hardState !== undefined) records.push({ kind: "hard", hardState: ready.hardState });
    member.disk.write(ready.number, records);
    member.writes.push(ready);
    if (ready.snapshot !== undefined || ready.committed.length > 0) member.applies.push(ready);
    this.#send(ready.messages);
    return ready;
  }

  #send(messages: readonly raftpb.Message[]): void {
    for (const message of messages) {
      if (!this.#isolated.has(message.from) && !this.#isolated.has(message.to))
        this.#network.push(message);
    }
  }

  #sync(member: LabMember, count = member.writes.length): string[] {
    const done = member.writes.splice(0, count);
    if (done.length === 0) return ["nothing to sync"];
    const { number } = done[done.length - 1];
    member.disk.sync(number);
    member.raft!.persisted(number);
    const messages = done.flatMap((ready) => ready.messagesAfterSync);
    this.#send(messages);
    return messages.map((message) => `send ${showMessage(message)}`);
  }

  #apply(member: LabMember): string[] {
    const lines: string[] = [];
    for (const ready of member.applies.splice(0)) {
      if (ready.snapshot !== undefined) {
        member.applied = ready.snapshot.metadata.index;
        member.confState = ready.snapshot.metadata.confState;
        lines.push(`installed ${member.applied}`);
      }
      for (const entry of ready.committed) {
        const change = confChangeOf(entry);
        if (change !== undefined) {
          member.confState = member.raft!.applyConfChange(change);
          lines.push(`applied ${showEntry(entry)}: ${showConfState(member.confState)}`);
        } else {
          lines.push(`applied ${showEntry(entry)}`);
        }
        member.applied = entry.index;
      }
      member.raft!.applied(member.applied);
    }
    return lines.length === 0 ? ["nothing to apply"] : lines;
  }

  #runMember(member: LabMember): string[] {
    const lines: string[] = [];
    while (member.raft!.hasReady() || member.writes.length > 0 || member.applies.length > 0) {
      if (member.raft!.hasReady()) {
        const ready = this.#takeReady(member);
        const { softState } = ready;
        if (softState !== undefined)
          lines.push(
            `${member.id} ${softState.role}, leader ${softState.leader}, term ${member.raft!.term}`,
          );
        for (const { context, index } of ready.readStates)
          lines.push(`${member.id} read ${Buffer.from(context).toString("latin1")} at ${index}`);
      }
      if (member.writes.length > 0) this.#sync(member);
      if (member.applies.length > 0)
        lines.push(...this.#apply(member).map((line) => `${member.id} ${line}`));
    }
    return lines;
  }

  /**
   * Takes the messages out that match "FROM->TO" and "TYPE", where given; FROM or TO may be left
   * empty.
   */
  #take(args: string[]): raftpb.Message[] {
    const way = args.find((arg) => arg.includes("->"));
    const type = args.find((arg) => !arg.includes("->"));
    const [from, to] = way === undefined ? ["", ""] : way.split("->");
    const matches = (message: raftpb.Message): boolean =>
      (from === "" || message.from === BigInt(from)) &&
      (to === "" || message.to === BigInt(to)) &&
      (type === undefined ||
        message.type === raftpb.MessageType[type as keyof typeof raftpb.MessageType]);
    const taken = this.#network.filter(matches);
    this.#network = this.#network.filter((message) => !matches(message));
    return taken;
  }

  #deliver(message: raftpb.Message): string[] {
    const member = this.#members.get(message.to);
    if (member?.raft === undefined) return [`lost ${showMessage(message)}`];
    const refused = member.raft.step(message);
    return refused === undefined
      ? [showMessage(message)]
      : [showMessage(message), `refused: ${refused}`];
  }

  #settle(): string[] {
    const lines: string[] = [];
    for (let turn = 0; turn < 200; turn++) {
      for (const member of this.#members.values())
        if (member.raft !== undefined) lines.push(...this.#runMember(member));
      if (this.#network.length === 0) return lines;
      for (const message of this.#take([])) lines.push(...this.#deliver(message));
    }
    return [...lines, "does not settle"];
  }

  #step(way: string, type: string, fields: string[]): string[] {
    const [from, to] = way.split("->").map(BigInt);
    const message = raftpb.Message.create({
      type: raftpb.MessageType[type as keyof typeof raftpb.MessageType],
      from,
      to,
    });
    for (const field of fields) {
      const [name, value] = field.split("=");
      if (name === "context") message.context = fromLatin1(value);
      else if (name === "reject") message.reject = value === "true";
      else if (name === "snapshot") message.snapshot = parseSnapshot(value);
      else if (name === "entries") {
        message.entries = value.split(",").map((one) => {
          const [index, term] = one.split("/").map(Number);
          return { type: 0, term, index, data: fromLatin1(`e${index}`) };
        });
      } else (message as unknown as Record<string, number>)[name] = Number(value);
    }
    const refused = this.#raft(to).step(message);
    return refused === undefined ? [] : [`refused: ${refused}`];
  }

  #log(member: LabMember): string[] {
    const raft = member.raft!;
    const lines =
      raft.firstIndex > 1
        ? [`snapshot ${raft.firstIndex - 1}/${raft.termOf(raft.firstIndex - 1)}`]
        : [];
    const terms: string[] = [];
    for (let index = raft.firstIndex; index <= raft.lastIndex; index++)
      terms.push(`${index}/${raft.termOf(index)}`);
    if (terms.length > 0) lines.push(terms.join(" "));
    return lines;
  }
}

/** INDEX/TERM:VOTER,VOTER,... */
function parseSnapshot(text: string): raftpb.Snapshot {
  const [position, voters] = text.split(":");
  const [index, term] = position.split("/").map(Number);
  const confState = raftpb.ConfState.create({ voters: voters.split(",").map(BigInt) });
  return raftpb.Snapshot.create({ metadata: { index, term, confState } });
}

function parseConfChange(words: string[]): raftpb.ConfChangeV2 {
  const transition = words[0] === "implicit" ? 1 : words[0] === "explicit" ? 2 : 0;
  const changes = words
    .filter((word) => /^[vlru]\d+$/.test(word))
    .map((word) => ({ type: confKinds[word[0]], nodeId: BigInt(word.slice(1)) }));
  return raftpb.ConfChangeV2.create({ transition, changes });
}
