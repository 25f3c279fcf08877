/**
 * What of a member's machine outlives its processes: the disk, with what goes wrong with it, and
 * the store that the saboteur alters on it.
 */
import { type Clock, type Random, Turns } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import type { SimOptions } from "./base/options.ts";
import type { Process, Scheduler } from "./base/scheduler.ts";
import { violate } from "./base/violation.ts";
import { DiskFaults } from "./disk-faults.ts";
import type { Links } from "./links.ts";
import { Sabotage } from "./sabotage.ts";

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
    this.keyspaces = new MemoryKeyspaceOpener(this.disk, {
      clock,
      writeDelayMs: () => diskRandom.unit() * options.backendWriteMs,
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
