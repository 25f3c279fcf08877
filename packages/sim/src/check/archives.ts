/**
 * Snapshots that clients are given, and what is restored from them:
 *
 *   ARCHIVE-1 a snapshot that was sent to its end is a sound file, and holds exactly the state at
 *   the index that it names: keys with every
 *             revision that was not compacted, and leases
 *   ARCHIVE-2 a cluster that is restored from one begins with that state, on every member, and goes
 *   on from it
 */
import { BoltFile } from "@quorate/bolt";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/node";
import { defined, raftpb, readU64BE, toLatin1 } from "@quorate/proto";
import { type Alarm, importEtcdFile, Store, verifyChecksum } from "@quorate/store";
import type { ModelState } from "../base/model.ts";
import { violate } from "../base/violation.ts";
import { modelOf } from "../users/auth-book.ts";
import type { AuthModel } from "../users/auth-model.ts";
import type { LeaseCheck } from "./lease-lives.ts";
import type { Safety } from "./safety.ts";

const PATH = "/archive/snapshot.db";
/** Earlier revisions that are read in each snapshot. */
const MAX_READ_REVISIONS = 12;

/** A snapshot that was found sound, and what was in it. */
export interface Archive {
  readonly bytes: Uint8Array;
  /** Where in the log its state stands. */
  readonly index: number;
  readonly state: ModelState;
  readonly compactRevision: number;
  /** Ids in decimal, and their times to live. */
  readonly leases: ReadonlyMap<string, number>;
  readonly alarms: readonly Alarm[];
  readonly users: AuthModel;
}

export class ArchiveCheck {
  readonly #safety: Safety;
  readonly #leases: LeaseCheck;
  /** What happened, for the record. */
  readonly counts = { whole: 0, broken: 0, restored: 0 };

  constructor(safety: Safety, leases: LeaseCheck) {
    this.#safety = safety;
    this.#leases = leases;
  }

  /**
   * Looks into a snapshot that was sent to its end; undefined for that of a member with nothing
   * yet. Rejects with a Violation.
   */
  async look(name: string, bytes: Uint8Array): Promise<Archive | undefined> {
    const disk = new MemoryDisk();
    disk.makeDir("/archive");
    disk.replace(PATH, bytes);
    const wrong = (what: string): never =>
      violate("ARCHIVE-1", `a snapshot of ${name}, ${bytes.length} bytes: ${what}`);
    try {
      verifyChecksum(disk, PATH, () => {});
    } catch (error) {
      return wrong((error as Error).message);
    }
    const index = indexOf(disk);
    // Who has only just joined has applied nothing, and has no index.
    if (index === undefined)
      return isBlank(disk)
        ? undefined
        : wrong("it has keys, and does not say at which index it stands");
    const revision =
      this.#safety.revisionAt(index) ??
      wrong(`it stands at index ${index}, which no member has applied`);
    const state = defined(this.#safety.stateAt(revision), "the state");
    const keyspaces = new MemoryKeyspaceOpener(disk);
    disk.makeDir("/store");
    const position = { index: 1, term: 1, confState: raftpb.ConfState.create() };
    let store: Store;
    try {
      await importEtcdFile({ disk, keyspaces }, PATH, "/store", { members: [], position });
      store = await Store.open(keyspaces, "/store");
    } catch (error) {
      return wrong((error as Error).message);
    }
    const differs = this.#differs(store, index, revision);
    if (differs !== undefined) wrong(`at index ${index}, ${differs}`);
    const leases = new Map(
      [...store.lessor.all()].map(({ id, ttlSeconds }) => [`${id}`, ttlSeconds]),
    );
    const archive = {
      bytes,
      index,
      state,
      compactRevision: store.mvcc.compactRevision,
      leases,
      alarms: store.alarms.list(),
      users: modelOf(store),
    };
    await store.close({ flush: false });
    this.counts.whole++;
    return archive;
  }

  #differs(store: Store, index: number, revision: number): string | undefined {
    const { mvcc, lessor } = store;
    const users = modelOf(store).text;
    const expectedUsers = this.#safety.users.at(index).text;
    if (users !== expectedUsers) return `its users and roles are ${users}, not ${expectedUsers}`;
    if (mvcc.currentRevision !== revision)
      return `it is at revision ${mvcc.currentRevision}, not ${revision}`;
    const leases = [...lessor.all()].map(({ id }) => `${id}`).sort();
    const expected = this.#leases.existingAt(index);
    if (leases.join(" ") !== expected.join(" "))
      return `its leases are ${leases.join(" ")}, not ${expected.join(" ")}`;
    const first = Math.max(1, mvcc.compactRevision, revision - MAX_READ_REVISIONS);
    for (let at = first; at <= revision; at++) {
      const wrong = this.#safety.contentDiffers({ mvcc }, at);
      if (wrong !== undefined) return `at revision ${at} ${wrong}`;
    }
    return undefined;
  }
}

function isBlank(disk: MemoryDisk): boolean {
  const file = BoltFile.open(disk, PATH);
  try {
    for (const slice of file.records("key")) if ([...slice].length > 0) return false;
    return true;
  } finally {
    file.close();
  }
}

function indexOf(disk: MemoryDisk): number | undefined {
  const file = BoltFile.open(disk, PATH);
  try {
    for (const slice of file.records("meta")) {
      for (const [key, value] of slice)
        if (toLatin1(key) === "consistent_index") return readU64BE(value, 0);
    }
    return undefined;
  } finally {
    file.close();
  }
}
