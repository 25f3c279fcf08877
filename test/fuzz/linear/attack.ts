/**
 * Texts of every class in every slot of every request, and what each costs the process that gets
 * it. A case is made from the seed and its number alone, so a run is repeated or gone on with from
 * any case. Over one pass every slot gets one text; the next pass has the next unit for each.
 */
import { setTimeout as delay } from "node:timers/promises";
import { HEADS, PLACES, shown, TAILS, UNITS } from "../../linear/texts.ts";
import { SeededRandom } from "../../support/random.ts";
import { processorMs } from "./cost.ts";
import type { AttackOptions } from "./options.ts";
import { allShapes, Servers, type Target } from "./servers.ts";
import { type Filling, isInBody, requestOf, type Slot, sizeOf, slotsOf } from "./slots.ts";
import { type Protocol, type RawRequest, send } from "./wire.ts";

/** Heads of requests: just below the limit of one header, and beyond it. */
const HEAD_BYTES = [15_000, 15_000, 60_000];
const BODY_BYTES = [16_000, 60_000, 60_000, 200_000, 200_000, 1_400_000];
/** A request that costs less than this above its base is none. */
const NOISE_MS = 8;
const POLL_MS = 20;
const QUIET_MS = 120;
const QUIET_PROCESSOR_MS = 10;
/** A request that takes longer than this is given up, and the servers are started again. */
const CASE_LIMIT_MS = 20_000;
const CONFIRMATIONS = 3;

export interface Case {
  readonly number: number;
  readonly slot: Slot;
  readonly filling: Filling;
  readonly protocol: Protocol;
}

export interface Worst {
  readonly port: string;
  readonly label: string;
  readonly msPerKib: number;
  readonly ms: number;
  readonly kib: number;
  readonly what: string;
}

export class Attack {
  readonly found = new Map<string, Worst>();
  readonly worst = new Map<string, Worst>();
  readonly statuses = new Map<number, number>();
  cases = 0;
  next: number;
  readonly #options: AttackOptions;
  readonly #slots: readonly Slot[];
  readonly #bases = new Map<string, number>();
  #servers: Servers | undefined;
  #sinceFresh = 0;
  #previous: Case | undefined;

  constructor(options: AttackOptions) {
    this.#options = options;
    this.next = options.from;
    const slots = allShapes().flatMap(slotsOf);
    const random = new SeededRandom(options.seed);
    // In an order of the seed's, so that a part of a pass sees something of every port.
    for (let i = slots.length - 1; i > 0; i--) {
      const j = random.below(i + 1);
      [slots[i], slots[j]] = [slots[j]!, slots[i]!];
    }
    this.#slots = slots;
  }

  get slotCount(): number {
    return this.#slots.length;
  }

  /** The case of a number. */
  caseOf(number: number): Case {
    const index = number % this.#slots.length;
    const pass = Math.floor(number / this.#slots.length);
    const random = new SeededRandom((this.#options.seed * 7_919 + number * 104_729) | 0);
    for (let i = 0; i < 5; i++) random.below(2);
    const slot = this.#slots[index]!;
    const isSharp = random.oneIn(2);
    const filling: Filling = {
      unit: UNITS[(pass * 7 + index) % UNITS.length]!,
      head: isSharp ? random.pick(HEADS) : "",
      tail: isSharp || random.oneIn(2) ? random.pick(TAILS) : "",
      place: random.pick(PLACES),
      bytes: random.pick(isInBody(slot) ? BODY_BYTES : HEAD_BYTES),
      isRaw: random.oneIn(3),
    };
    return { number, slot, filling, protocol: random.oneIn(2) ? "h2" : "http/1.1" };
  }

  /** Runs for the time in the options. @param report called with lines */
  async run(report: (line: string) => void): Promise<void> {
    const { minutes, logEveryMs, cases, only } = this.#options;
    const startMs = performance.now();
    let loggedMs = startMs;
    try {
      for (; cases === 0 || this.cases < cases; this.next++) {
        const nowMs = performance.now();
        if (nowMs - startMs > minutes * 60_000) break;
        if (nowMs - loggedMs > logEveryMs) {
          loggedMs = nowMs;
          report(this.#progress((nowMs - startMs) / 60_000));
        }
        const one = this.caseOf(this.next);
        if (!`${one.slot.shape.port} ${one.slot.shape.name}`.includes(only)) continue;
        await this.#try(one, report);
        this.#previous = one;
        this.cases++;
      }
    } finally {
      await this.#servers?.stop();
    }
  }

  #progress(minutes: number): string {
    const statuses = [...this.statuses].sort().map(([status, count]) => `${status}: ${count}`);
    return (
      `${minutes.toFixed(1)} min: ${this.cases} cases, next ${this.next} of pass ` +
      `${Math.floor(this.next / this.#slots.length)}; ${this.found.size} found; ` +
      statuses.join(", ")
    );
  }

  async #try(one: Case, report: (line: string) => void): Promise<void> {
    const { limitMsPerKib } = this.#options;
    const first = await this.#cost(one, report);
    const key = `${one.slot.shape.port}|${one.slot.label}`;
    const known = Math.max(this.worst.get(key)?.msPerKib ?? 0, 0.2);
    if (first.msPerKib <= Math.min(known, limitMsPerKib)) return;
    let least = first;
    for (let i = 0; i < CONFIRMATIONS && least.msPerKib > known && least.ms < CASE_LIMIT_MS; i++) {
      const again = await this.#cost(one, report);
      if (again.msPerKib < least.msPerKib) least = again;
    }
    if (least.msPerKib > (this.worst.get(key)?.msPerKib ?? 0)) this.worst.set(key, least);
    if (least.msPerKib > limitMsPerKib) {
      const isNew = (this.found.get(key)?.msPerKib ?? 0) < least.msPerKib / 1.5;
      if (!isNew) return;
      this.found.set(key, least);
      report(`FOUND case ${one.number}: ${rowOf(least)}`);
    } else if (first.msPerKib > limitMsPerKib && this.#previous !== undefined) {
      // It may have been the work that the one before left behind its response.
      const before = this.#previous;
      this.#previous = undefined;
      await this.#try(before, report);
    }
  }

  /** What a case costs above a harmless request of the same shape. */
  async #cost(one: Case, report: (line: string) => void): Promise<Worst> {
    const { slot, filling, protocol } = one;
    const target = await this.#target(slot.shape.port);
    const request = this.#request(requestOf(slot, filling, protocol));
    const kib = sizeOf(request) / 1024;
    const baseKey = `${slot.shape.port}|${slot.shape.name}|${protocol}`;
    let base = this.#bases.get(baseKey);
    const spent = await this.#spent(target, protocol, request, report);
    if (base === undefined && spent > NOISE_MS) {
      const harmless = { ...filling, unit: "a", head: "", tail: "", bytes: 1, isRaw: false };
      const usual = this.#request(requestOf(slot, harmless, protocol));
      const costs: number[] = [];
      for (let i = 0; i < 3; i++)
        costs.push(await this.#spent(await this.#target(slot.shape.port), protocol, usual, report));
      base = Math.min(...costs);
      this.#bases.set(baseKey, base);
    }
    const ms = Math.max(0, spent - (base ?? 0) - NOISE_MS);
    const { unit, head, tail, place, bytes, isRaw } = filling;
    const what =
      `${slot.shape.name} over ${protocol}: ${shown(head)} + ${bytes} bytes of ${shown(unit)} + ` +
      `${shown(tail)}, ${place}${isRaw ? ", raw" : ""}`;
    return { port: slot.shape.port, label: slot.label, msPerKib: ms / kib, ms, kib, what };
  }

  #request(request: RawRequest): RawRequest {
    const token = this.#servers!.rootToken;
    const fill = (text: string): string => text.replace("@ROOT@", token);
    return { ...request, headers: request.headers.map(([name, value]) => [name, fill(value)]) };
  }

  async #target(port: string): Promise<Target> {
    if (this.#servers === undefined || this.#sinceFresh >= this.#options.freshEvery) {
      await this.#servers?.stop();
      this.#servers = await Servers.start();
      this.#sinceFresh = 0;
    }
    this.#sinceFresh++;
    return this.#servers.targets.get(port)!;
  }

  /** Processor time of the target's process from the request to its end. */
  async #spent(
    target: Target,
    protocol: Protocol,
    request: RawRequest,
    report: (line: string) => void,
  ): Promise<number> {
    let before: number;
    try {
      before = processorMs(target.pid);
    } catch {
      before = 0;
    }
    const startMs = performance.now();
    const { ended, giveUp } = send(target.where, protocol, request);
    let isOver = false;
    void ended.then(({ status }) => {
      isOver = true;
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    });
    let seen = before;
    for (let quietMs = 0; !isOver; ) {
      await Promise.race([ended, delay(POLL_MS)]);
      if (isOver) break;
      const now = this.#processor(target);
      quietMs = now - seen < QUIET_PROCESSOR_MS ? quietMs + POLL_MS : 0;
      seen = now;
      if (quietMs >= QUIET_MS) break;
      if (performance.now() - startMs > CASE_LIMIT_MS) {
        giveUp();
        report(`given up after ${CASE_LIMIT_MS} ms at ${target.port}; the servers start again`);
        await this.#servers?.stop();
        this.#servers = undefined;
        return Math.max(now - before, CASE_LIMIT_MS);
      }
    }
    giveUp();
    // What is left to do behind the response belongs to it.
    await new Promise((resolve) => setImmediate(resolve));
    const spent = this.#processor(target) - before;
    if (this.#servers?.hasEnded) {
      report(`A SERVER HAS ENDED BY ITSELF (${target.port})\n${this.#servers.logTails()}`);
      await this.#servers.stop();
      this.#servers = undefined;
      return CASE_LIMIT_MS;
    }
    return spent;
  }

  #processor({ pid }: Target): number {
    try {
      return processorMs(pid);
    } catch {
      return 0;
    }
  }
}

/** A line of the table. */
export function rowOf({ port, label, msPerKib, ms, kib, what }: Worst): string {
  return (
    `${msPerKib.toFixed(2)} ms/KiB (${ms.toFixed(0)} ms, ${kib.toFixed(0)} KiB) ` +
    `${port}, ${label}: ${what}`
  );
}
