/**
 * LOG-11: a member that was given a snapshot finds the entries behind it in its leader's log while
 * it is under way and for half a minute after it was taken. Otherwise the member goes from snapshot
 * to snapshot while clients write (etcd: releaseDelayAfterSnapshot). Looked at whenever a leader
 * cuts its log short.
 */
import { idToHex, raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { Violation } from "../base/violation.ts";

/** For so long of the member's own time. */
const KEPT_MS = 30_000;

interface Sent {
  readonly index: number;
  untilMs: number;
}

export class KeptLogCheck {
  readonly #now: () => number;
  /** By sender, then by receiver. */
  readonly #sent = new Map<string, Map<bigint, Sent>>();
  readonly counts = { kept: 0 };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A snapshot sets out to a member. */
  sent(name: string, { to, snapshot }: raftpb.Message): void {
    const index = snapshot?.metadata.index ?? 0;
    this.#sent.get(name)?.set(to, { index, untilMs: Number.POSITIVE_INFINITY });
  }

  /** A process of a member has made its machine. @param drift the most its clock is fast by */
  watch(name: string, raft: Raft, drift: number, fail: (error: unknown) => void): void {
    const sent = new Map<bigint, Sent>();
    this.#sent.set(name, sent);
    const ready = raft.ready.bind(raft);
    raft.ready = () => {
      const given = ready();
      // Another one is due: the one before is of no use to its receiver.
      for (const { type, to } of given.messages)
        if (type === raftpb.MessageType.MsgSnap) sent.delete(to);
      return given;
    };
    const report = raft.reportSnapshot.bind(raft);
    raft.reportSnapshot = (id, taken) => {
      const one = sent.get(id);
      if (taken && one !== undefined) one.untilMs = this.#now() + KEPT_MS / (1 + drift);
      else sent.delete(id);
      report(id, taken);
    };
    const compact = raft.compact.bind(raft);
    raft.compact = (index, confState) => {
      for (const [to, one] of sent) {
        // A snapshot that it has installed itself begins its log anew.
        if (one.untilMs < this.#now() || one.index < raft.firstIndex - 1) sent.delete(to);
        else if (index <= one.index) this.counts.kept++;
        else
          fail(
            new Violation(
              `LOG-11: ${name} drops its log up to ${index}, and has given ${idToHex(to)} a snapshot of ${one.index}`,
            ),
          );
      }
      compact(index, confState);
    };
  }

  /** A member's process ends, or the member stops: it gives its log to nobody any more. */
  forget(name: string): void {
    this.#sent.get(name)?.clear();
    this.#sent.delete(name);
  }
}
