// biome-ignore-all lint/suspicious/noTemplateCurlyInString: source text with templates in it
/**
 * Bugs in the members' own source. Each changes one place, written as the text before and after,
 * and is planted while the modules are loaded: the worker that runs with it has another build of a
 * member, and no other has.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { changeSource, countPlaces, replacePlaces } from "@quorate/host/testing";
import type { SourceBug } from "../source-bug.ts";
import { USER_BUGS } from "../users/planted-bugs.ts";
import { STREAM_BUGS } from "./planted-streams.ts";

export type { SourceBug } from "../source-bug.ts";

/**
 * By name. What each does is said by its name; the checker meant to find it is in
 * docs/evidence/correctness.md.
 */
export const SOURCE_BUGS = {
  "leader-overwrites-its-log": {
    file: "raft/src/log.ts",
    before:
      'if (entries.length > 0 && entries[0].index <= this.lastIndex) violated("RAFT-19", `entry ${entries[0].index} replaces one`);',
    after: `if (this.lastIndex > this.#committed && entries.length > 0 && entries[0].index % 5 === 0) {
      this.#truncate(this.lastIndex - 1);
      for (const entry of entries) entry.index--;
    }`,
  },
  "voter-ignores-logs": {
    file: "raft/src/log.ts",
    before: "return term > ours || (term === ours && index >= this.lastIndex);",
    after: "return term >= 0 && ours >= 0 && index >= 0;",
  },
  "votes-twice": {
    file: "raft/src/replica.ts",
    before: "(this.#vote === 0n && leader === 0n) ||",
    after: "leader === 0n ||",
  },
  "snapshot-restored-wrongly": {
    file: "store/src/snapshot-stream.ts",
    before:
      "batch.push({ key: payload.subarray(at + 8, keyEnd), value: payload.subarray(keyEnd, valueEnd) });",
    after:
      "if (count % 40 !== 39) batch.push({ key: payload.subarray(at + 8, keyEnd), value: payload.subarray(keyEnd, valueEnd) });",
  },
  "watch-skips-an-event": {
    file: "member/src/watch/change-feed.ts",
    before: "if (!watcher.wants(event) || watcher.stream.offer(watcher, event)) return;",
    after:
      "if (event.main % 50 === 7 || !watcher.wants(event) || watcher.stream.offer(watcher, event)) return;",
  },
  "watch-repeats-after-resume": {
    file: "member/src/watch/change-feed.ts",
    before: "else this.#enqueue(watcher);\n  }\n\n  remove(",
    after:
      "else {\n      watcher.nextRevision = Math.max(1, watcher.nextRevision - 1);\n      this.#enqueue(watcher);\n    }\n  }\n\n  remove(",
  },
  "lease-expires-early": {
    file: "member/src/lease/keeper.ts",
    before: "lease.expiryMs = now + lease.ttlSeconds * 1000;",
    after: "lease.expiryMs = now + lease.ttlSeconds * 700;",
  },
  "lease-revoked-twice": {
    file: "member/src/lease/keeper.ts",
    before: "const requests = due.map(({ id }) => LeaseRevokeRequest.encode({ ID: id }));",
    after:
      "const requests = [...due, ...due].map(({ id }) => LeaseRevokeRequest.encode({ ID: id }));",
  },
  "hash-drift": {
    file: "store/src/mvcc/write-txn.ts",
    before:
      "const revision = encodeRevision(main, sub, true);\n    this.state.backend.put(Bucket.key, revision, record);",
    after: `const revision = encodeRevision(main, sub, true);
    this.state.forgotten = (this.state.forgotten ?? 0) + 1;
    if (this.state.forgotten % 20 !== 0) this.state.backend.put(Bucket.key, revision, record);`,
  },
  "index-before-its-entry": {
    file: "store/src/store.ts",
    before: "    this.#revisionBefore = this.mvcc.currentRevision;\n",
    after:
      "    this.#position = { index: entry.index, term: entry.term, confState: this.#position.confState };\n",
  },
  "half-an-entry-flushed": {
    file: "store/src/mvcc/write-txn.ts",
    before: "      this.#stageTombstone(key, sub);\n",
    after:
      "      this.state.backend.put(Bucket.key, encodeRevision(main, sub, true), KeyValue.encode({ key: fromLatin1(key) }));\n",
  },
  "half-an-entry-read": {
    file: "store/src/mvcc/read-view.ts",
    before: "const at = revision <= 0 ? this.revision : revision;",
    after: "const at = revision <= 0 ? Number.MAX_SAFE_INTEGER : revision;",
  },
  "read-not-pinned": {
    file: "store/src/requests/range.ts",
    before: "view.counts.ranges++;\n  const at = view.resolve(request.revision);",
    after:
      "view.counts.ranges++;\n  const at = request.revision > 0 ? view.resolve(request.revision) : Number.MAX_SAFE_INTEGER;",
  },
  "compaction-ignores-reads": {
    file: "store/src/mvcc/compaction.ts",
    before: "if (pinned < this.#state.compactRevision) return true;",
    after: "if (pinned < 0 && pinned > this.#state.compactRevision) return true;",
  },
  "difference-unnoticed": {
    file: "member/src/corruption/checker.ts",
    before: "if (groups.size === 1) return true;",
    after: "if (groups.size >= 1) return true;",
  },
  "names-another-member": {
    file: "member/src/corruption/checker.ts",
    before: "if (value !== majority) for (const id of ids)",
    after: "if (value === majority) for (const id of ids.slice(0, 1))",
  },
  "serves-while-named": {
    file: "member/src/corruption/corruption.ts",
    before: "this.#healer?.look();",
    after: "",
  },
  "heals-by-word-alone": {
    file: "member/src/corruption/healer.ts",
    before: "this.isUnsure = true;\n      await replaceStore(stopped);",
    after: "if (replaceStore !== undefined) return this.#endAlarm();",
  },
  "snapshot-misses-a-record": {
    file: "store/src/etcd-file/export.ts",
    before: "yield slice;\n    }\n  }\n  async function* only",
    after:
      "yield slice.filter(([key]) => key.length < 17 || key[7]! % 9 !== 5);\n    }\n  }\n  async function* only",
  },
  "restore-forgets-leases": {
    file: "store/src/etcd-file/schema.ts",
    before: 'export const CARRIED_BUCKETS = ["key", "lease", ',
    after: 'export const CARRIED_BUCKETS = ["key", ',
  },
  "restore-not-synced": {
    file: "backup/src/new-member.ts",
    before:
      "for (const dir of [storeDir, memberDir, dataDir, parentOf(dataDir)]) disk.syncDir(dir);",
    after: "",
  },
  "update-not-followed": {
    file: "member/src/apply/configuration.ts",
    before: "if (transport.peers().some((peer) => peer.id === id)) transport.updatePeer(id, urls);",
    after: "if (transport.peers().some((peer) => peer.id === id)) return;",
  },
  "learner-limit-ignored": {
    file: "store/src/membership/membership.ts",
    before: "return isLearner && learners >= maxLearners",
    after: "return isLearner && learners > maxLearners",
  },
  "learner-never-asks": {
    file: "member/src/membership/auto-promotion.ts",
    before: "if (this.#isAsking || !isLearner || !this.#isPublished) return;",
    after: "if (this.#isAsking || isLearner || !this.#isPublished) return;",
  },
  "survivor-drops-its-tail": {
    file: "member/src/bootstrap.ts",
    before: "const { entries, hardState } = found;\n",
    after: `const { hardState } = found;
  const known = Math.max(hardState.commit, store.position.index);
  const entries = found.entries.filter(({ index }) => index <= known);
  found = { ...found, entries };
`,
  },
  "proposes-unchecked": {
    file: "member/src/entry-points.ts",
    before: `message = decoded ?? decodeRequest(kind, request, this.#deps.limits);
      const refusal = this.spaceRefusal(kind, message);
      if (refusal !== undefined) return refusal;
    } catch (error) {
      return Promise.reject(error);
    }
    return this.proposeFitting(caller, kind, request, message);`,
    after: `const refusal = decoded && this.spaceRefusal(kind, decoded);
      if (refusal !== undefined) return refusal;
    } catch (error) {
      return Promise.reject(error);
    }
    return Promise.resolve()
      .then(() => this.#deps.authority.identify(caller))
      .then((identity) => this.#enqueue(caller, identity, kind, request));`,
  },
  "takes-proposals-unchecked": {
    file: "member/src/loop/peer-messages.ts",
    before: "const problem = this.#problem(entry, from);",
    after: "const problem: string | undefined = undefined;",
  },
  "ends-on-malformed": {
    file: "store/src/apply.ts",
    before: "error instanceof WireError ? malformation(data) : undefined",
    after: "undefined as InvalidRequestError | undefined",
  },
  "split-frame-loses-its-head": {
    file: "rpc/src/http2/frame-splitter.ts",
    before: "      larger.set(part);\n",
    after: "",
  },
  "stream-window-ignored": {
    file: "rpc/src/http2/sender.ts",
    before: "          stream.sendWindowBytes,\n          this.#windowBytes,",
    after: "          this.#windowBytes,",
  },
  "long-frame-taken": {
    file: "rpc/src/http2/frame-splitter.ts",
    before:
      "if (length > DEFAULT_MAX_FRAME_BYTES) {\n        this.#handler.frameTooLong(length, chunk[at + 3]",
    after: "if (length < 0) {\n        this.#handler.frameTooLong(length, chunk[at + 3]",
  },
  "gather-buffer-reused": {
    file: "transport/src/frames.ts",
    before: "    this.#chunks.push(chunk);",
    after:
      "    const owner = this as unknown as { small?: Uint8Array };\n" +
      "    const small = (owner.small ??= new Uint8Array(512));\n" +
      "    if (chunk.length > small.length) this.#chunks.push(chunk);\n" +
      "    else {\n" +
      "      small.set(chunk);\n" +
      "      this.#chunks.push(small.subarray(0, chunk.length));\n" +
      "    }",
  },
  "damage-passed-over": {
    file: "transport/src/tunnel.ts",
    before:
      "if (this.#stream !== STREAM) throw new FrameError(`HTTP/2 data for stream ${this.#stream}`);",
    after: "",
  },
  "snapshot-frame-unchecked": {
    file: "store/src/snapshot-stream.ts",
    before: "const crc = crc32c(0, payload);\n    if (readU32BE(await reader.take(4), 0) !== crc)",
    after: "const crc = readU32BE(await reader.take(4), 0);\n    if (crc < 0)",
  },
  "failed-sync-taken-for-durable": {
    file: "wal/src/opening.ts",
    before: "makeDurable(tail, end.durableBytes, end.offset);",
    after: "makeDurable(tail, end.offset, end.offset);",
  },
  "refused-put-leaves-its-lease": {
    file: "store/src/requests/put.ts",
    before:
      'if (request.lease !== 0n && !leases.exists(request.lease)) throw errorOf("LeaseNotFound");',
    after: `if (request.lease === 0n || leases.exists(request.lease)) return;
  const key = toLatin1(request.key);
  if (leases.leaseOf(key) !== 0n) leases.detach(leases.leaseOf(key), key);
  throw errorOf("LeaseNotFound");`,
  },
  "refused-write-goes-on": {
    file: "member/src/entry-points.ts",
    before: "if (refusal !== undefined) return refusal;",
    after: `if (refusal !== undefined) {
        this.#enqueue(caller, undefined, kind, request).catch(() => {});
        return refusal;
      }`,
  },
  "proposes-again": {
    file: "member/src/loop/proposals.ts",
    before: "this.#handedIn(term, this.#takenIds);\n    return taken;",
    after: `this.handed ??= [];
    for (const one of this.handed) {
      if (one.term === term || !this.#waiting.has(one.id)) continue;
      taken.push(one.payload);
      this.#takenIds.push(one.id);
    }
    this.#handedIn(term, this.#takenIds);
    this.handed = taken.map((payload, i) => ({ payload, id: this.#takenIds[i], term })).concat(
      this.handed.filter((one) => one.term === term && this.#waiting.has(one.id)),
    );
    return taken;`,
  },
  "quota-unchecked": {
    file: "member/src/space/space-keeper.ts",
    before: "this.#parts.store.current.quotaBytes + costBytes < quotaBytes",
    after: "this.#parts.store.current.quotaBytes < 2 * quotaBytes",
  },
  "quota-counted-twice": {
    file: "member/src/space/space-keeper.ts",
    before: "const { quotaBytes } = this.#options;\n    return (",
    after: `const { quotaBytes } = this.#options;
    const usedBytes = 2 * this.#parts.store.current.quotaBytes;
    const isFull = quotaBytes !== undefined && usedBytes + costBytes >= quotaBytes;
    if (costBytes > 0 && isFull) throw errorOf("NoSpace");
    return (`,
  },
  "alarm-passes-transactions": {
    file: "store/src/apply.ts",
    before: 'costBytes(request) > 0) throw errorOf("NoSpace");',
    after:
      'costBytes(request) > 0 && type.typeName !== "etcdserverpb.TxnRequest") throw errorOf("NoSpace");',
  },
  "alarm-stops-deletions": {
    file: "store/src/apply.ts",
    before: "const request = type.decode(bytes);",
    after: `const request = type.decode(bytes);
  if (alarms.noSpace && type.typeName === "etcdserverpb.DeleteRangeRequest") throw errorOf("NoSpace");`,
  },
  "promotes-by-what-was-sent": {
    file: "member/src/membership/reconfiguration.ts",
    before: "if (learner.match >= own.match * READY_SHARE) return;",
    after: "if (learner.next >= own.match * READY_SHARE) return;",
  },
  "new-leader-keeps-lease-times": {
    file: "member/src/lease/keeper.ts",
    before: "clock.monotonicMs() + this.#options.extendMs + remaining * 1000",
    after: "clock.monotonicMs() + 0 * this.#options.extendMs + remaining * 1000",
  },
  "last-voter-forgets": {
    file: "member/src/loop/loop.ts",
    before: "if (ready.hardState !== undefined && this.#mustSaveFirst(ready.hardState)) {",
    after: "if (ready.number < 0 && ready.hardState !== undefined) {",
  },
  "lowered-position-unnoticed": {
    file: "store/src/backend/live-bytes.ts",
    before: "if (savedIndex > index) throw problem(",
    after: "if (savedIndex > index + 1000) throw problem(",
  },
  "lost-member-unnoticed": {
    file: "store/src/store.ts",
    before: "membership.check(position.confState, path);",
    after: "",
  },
  "flip-taken-for-tear": {
    file: "wal/src/tear.ts",
    before: 'if (!hasTornSector(file, offset, stop)) return { kind: "damaged", reason };',
    after:
      'if (offset < 0 && !hasTornSector(file, offset, stop)) return { kind: "damaged", reason };',
  },
  "log-goes-while-a-snapshot-arrives": {
    file: "member/src/apply/sent-snapshots.ts",
    before: "...[...this.#byMember.values()].map((sent) => sent.index)",
    after: "...[...this.#byMember.values()].filter((one) => !one.isOver).map((sent) => sent.index)",
  },
  "confirmed-from-the-answer": {
    file: "member/src/lease/keeper.ts",
    before: "epoch.confirmedMs = askedMs;",
    after: "epoch.confirmedMs = Math.max(askedMs, this.#deps.clock.monotonicMs());",
  },
  "earlier-terms-count-as-uncommitted": {
    file: "raft/src/leader.ts",
    before: "const before = Math.max(log.committed, this.#termStartIndex);",
    after: "const before = log.committed;",
  },
  "log-waits-for-its-reader": {
    file: "host/src/log-output.ts",
    before: 'if ((error as { code?: string }).code === "EAGAIN") return false;',
    after: 'if ((error as { code?: string }).code === "EAGAIN") continue;',
  },
  ...STREAM_BUGS,
  ...USER_BUGS,
} as const satisfies Readonly<Record<string, SourceBug>>;

/** The names. */
export type SourceBugName = keyof typeof SOURCE_BUGS;

/** Where a file below packages/ is. */
export function sourcePath(file: string): string {
  return fileURLToPath(new URL(`../../../${file}`, import.meta.url));
}

/**
 * Why a bug cannot be planted any more, or undefined: its place has to be in the source exactly
 * once.
 */
export function misplaced({ file, before }: SourceBug): string | undefined {
  const count = countPlaces(readFileSync(sourcePath(file), "utf8"), before);
  return count === 1 ? undefined : `packages/${file} has ${count} places that read: ${before}`;
}

/**
 * From now on this thread loads members with the bug in them. To be called before the first of them
 * is loaded.
 */
export function plantInSource(name: SourceBugName): void {
  plantPatch(name, SOURCE_BUGS[name]);
}

/**
 * The same for a change that is none of the list. Throws an Error if its place is not in the source
 * exactly once.
 */
export function plantPatch(name: string, bug: SourceBug): void {
  const wrong = misplaced(bug);
  if (wrong !== undefined) throw new Error(`the bug ${name} cannot be planted: ${wrong}`);
  changeSource(sourcePath(bug.file), (source) => replacePlaces(source, bug.before, bug.after));
}
