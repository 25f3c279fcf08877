/**
 * What of a member's machine outlives its processes: the disk, with what goes wrong with it, and
 * the store that the saboteur alters on it.
 */
import { type Clock, type Random, Turns } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/node";
import { defined, equals, KeyValue, toLatin1 } from "@quorate/proto";
import type { SimOptions } from "./base/options.ts";
import type { Process, Scheduler } from "./base/scheduler.ts";
import { violate } from "./base/violation.ts";
import { DiskFaults } from "./disk-faults.ts";
import type { Links } from "./links.ts";
import { batchOpsOf } from "./step-limits.ts";

export interface MachineDeps {
  readonly scheduler: Scheduler;
  /** Disks are slow only while links are faulty. */
  readonly links: Links;
  readonly random: Random;
  readonly walDir: string;
  readonly storeDir: string;
  report(text: string): void;
  /** The process that runs on it at present. */
  process(): Process | undefined;
}

export class Machine {
  readonly disk: MemoryDisk;
  readonly keyspaces: MemoryKeyspaceOpener;
  /** What the disk takes its time by. */
  readonly clock: Clock;
  readonly faults: DiskFaults;
  readonly sabotage: Sabotage;
  /** Until then each sync takes long. */
  slowSyncUntilMs = 0;

  constructor(options: SimOptions, deps: MachineDeps) {
    const { scheduler, links, random, walDir, storeDir, report } = deps;
    const endOfTurn = () => violate("SIM", "a disk has no turns");
    this.clock = {
      turns: new Turns({ monotonicMs: () => scheduler.nowMs, endOfTurn }),
      wallMs: () => scheduler.nowMs,
      monotonicMs: () => scheduler.nowMs,
      after: (delayMs, task) => scheduler.after(delayMs, task, deps.process()),
      every: () => violate("SIM", "a disk has no periods"),
      endOfTurn,
    };
    const { clock } = this;
    const diskRandom = random.fork("disk");
    const syncDelayMs = () => {
      const slow =
        scheduler.nowMs < this.slowSyncUntilMs ||
        (options.slowSyncChance > 0 && diskRandom.unit() < options.slowSyncChance);
      return diskRandom.unit() * (slow && links.faulty ? options.slowSyncMs : options.syncMs);
    };
    this.disk = new MemoryDisk({ clock, syncDelayMs });
    // Some loads never end on a store that takes longer for a change: 10 ms at most was too long.
    const writeMs = Math.min(options.backendWriteMs, 5 * batchOpsOf(options));
    this.keyspaces = new MemoryKeyspaceOpener(this.disk, {
      clock,
      writeDelayMs: () => diskRandom.unit() * writeMs,
    });
    const place = { keyspaces: this.keyspaces, storePath: `${storeDir}/db`, report };
    this.faults = new DiskFaults({
      ...place,
      disk: this.disk,
      random: random.fork("disk faults"),
      walDir,
    });
    this.sabotage = new Sabotage({ ...place, random: random.fork("sabotage") });
  }

  /** The machine loses power, or its process is killed; from then on the disk does as it should. */
  crash(kind: "power" | "kill", random: Random): void {
    if (kind === "power") {
      this.disk.crash(random);
      this.faults.lied.lostPower();
    } else this.disk.kill(random);
    this.heal();
  }

  /** From now on the disk does as it should. */
  heal(): void {
    this.faults.heal();
    this.slowSyncUntilMs = 0;
  }
}

/**
 * Records of keys begin with this byte; then come eight bytes of revision, a mark, and eight more
 * (and one behind a deletion).
 */
const KEY_BUCKET = "k";
const RECORD_KEY_BYTES = 18;

/** A record that was made another. */
interface Alteration {
  /** As it stands in the keyspace, in latin1. */
  readonly place: string;
  readonly value: Uint8Array;
  readonly key: string;
  readonly revision: number;
}

interface SabotageDeps {
  readonly keyspaces: MemoryKeyspaceOpener;
  readonly random: Random;
  readonly storePath: string;
  report(text: string): void;
}

/**
 * A member's store made to differ from the others' behind its back: the value of one record is
 * another, as a store's own defect or a bit of memory might leave it. No checksum is wrong, every
 * revision fits: only a comparison with the other members shows it.
 */
class Sabotage {
  readonly #deps: SabotageDeps;
  readonly #done: Alteration[] = [];

  constructor(deps: SabotageDeps) {
    this.#deps = deps;
  }

  /** Alters a record; false if there is none yet. */
  alter(): boolean {
    const { keyspaces, random, storePath, report } = this.#deps;
    const values = keyspaces.values(storePath);
    const places = [...(values?.keys() ?? [])]
      .filter((place) => place.startsWith(KEY_BUCKET) && place.length === RECORD_KEY_BYTES)
      .sort();
    if (places.length === 0) return false;
    // The newest more often than others: those are what clients see.
    const newest = Math.min(places.length, 6);
    const place =
      places[
        random.below(3) === 0
          ? random.below(places.length)
          : places.length - 1 - random.below(newest)
      ];
    const kv = KeyValue.decode(defined(values!.get(place), "the record"));
    if (kv.value.length === 0) return false;
    const bytes = kv.value.slice();
    bytes[random.below(bytes.length)] ^= 1;
    const value = KeyValue.encode({ ...kv, value: bytes });
    keyspaces.alter(storePath, place, value);
    const key = toLatin1(kv.key);
    this.#done.push({ place, value, key, revision: kv.modRevision });
    report(`the value of ${key} at revision ${kv.modRevision} is altered in the store`);
    return true;
  }

  /**
   * Alterations that are still in the store: neither compacted away, nor gone with the store that
   * they were made in.
   */
  get standing(): readonly Pick<Alteration, "key" | "revision">[] {
    if (this.#done.length === 0) return [];
    const values = this.#deps.keyspaces.values(this.#deps.storePath);
    return this.#done.filter(({ place, value }) => {
      const now = values?.get(place);
      return now !== undefined && equals(now, value);
    });
  }
}
