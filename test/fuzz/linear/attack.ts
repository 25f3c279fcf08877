/**
 * Texts of every class in every slot of every request, and what each costs the process that gets
 * it. A case is made from the seed and its number alone, so a run is repeated or gone on with from
 * any block of cases. Over one pass every slot gets one text; the next pass has the next one.
 *
 * Requests go out in batches, short texts before long ones. A batch whose processor time is above
 * what its requests cost otherwise is cut in halves until one request is left; that one is asked
 * again at growing lengths. So a case costs a fraction of a millisecond until it is suspicious.
 */
import { setTimeout as delay } from "node:timers/promises";
import { HEADS, PLACES, shown, TAILS, UNITS } from "../../linear/texts.ts";
import { SeededRandom } from "../../support/random.ts";
import { processorMs } from "./cost.ts";
import type { AttackOptions } from "./options.ts";
import { type Filling, requestOf, type Slot, sizeOf, variantsOf } from "./slots.ts";
import { Connections, type Protocol, type RawRequest, type Where } from "./wire.ts";

/** A port under attack. */
export interface Target {
  readonly where: Where;
  /** The processes that work on its requests. */
  readonly pids: readonly number[];
}

/** What is under attack; started again now and then. */
export interface Victims {
  /** By the names of ports in the shapes. */
  readonly targets: ReadonlyMap<string, Target>;
  /** Replaces @ROOT@ in headers. */
  readonly rootToken: string;
  readonly hasEnded: boolean;
  logTails(): string;
  stop(): Promise<void>;
}

/** Of a text in the head of a request: up to just below the limit of one header, and beyond it. */
const HEAD_LADDER = [1_000, 15_000];
const BEYOND_HEAD = 60_000;
const VALUE_LADDER = [1_000, 16_000];
/** Of many entries: a loop over what came before shows with thousands of them. */
const ENTRIES_LADDER = [4_000, 24_000, 120_000];
const LONGEST_BYTES = 1_400_000;
const BATCH_REQUESTS = 48;
const BATCH_BYTES = 500_000;
/** A batch is suspicious above what is usual by this share of the limit, for one of its texts. */
const SUSPICIOUS_SHARE = { head: 0.3, body: 0.1 };
const NOISE_MS = 4;
/** What a request costs until its shape is looked at. */
const USUAL_MS = 0.3;
/** What a KiB costs where nothing more is known of its shape, and the most that counts as usual. */
const USUAL_MS_PER_KIB = 0.02;
const MAX_USUAL_MS_PER_KIB = 0.3;
const USUAL_FACTOR = 1.3;
/** Less than this above the base is noise, whatever it comes to for a KiB. */
const LEAST_FOUND_MS = 12;
/** A longer text is tried where the time grows by more than this power of the length. */
const GROWTH_EXPONENT = 1.35;
const GROWTH_MS_PER_KIB = 0.08;
const POLL_MS = 2;
const QUIET_MS = 60;
const QUIET_PROCESSOR_MS = 1;
const SETTLED_MS = 0.4;
const SETTLE_POLLS = 20;
/** A batch that takes longer than this is given up, and the servers are started again. */
const HANG_LIMIT_MS = 20_000;
/** What takes as long as this is no other request's work. */
const SURE_MS = 1000;
const BASE_COPIES = 6;
const PAIRS = 5;
/** One of so many batches is cut up although it is not suspicious: for the table. */
const SAMPLED_BATCHES = 40;

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
  /** Of the time in the length; 0 where the shorter text costs next to nothing. */
  readonly exponent: number;
  readonly what: string;
}

interface Sent {
  readonly one: Case;
  readonly request: RawRequest;
  readonly kib: number;
}

const isHead = ({ kind }: Slot): boolean => /^(?:header|segment|parameter|method)/.test(kind);
const isEntries = ({ kind }: Slot): boolean => /^(?:many|names|deep|digits|body|chunks)/.test(kind);
const SINGLES = UNITS.filter(({ length }) => length === 1);
const OTHERS = UNITS.filter(({ length }) => length > 1);
/** What a row of the table is of. */
const placeOf = ({ shape, kind }: Slot): string =>
  /^(?:header|segment|parameter|method)/.test(kind) ? kind : `${shape.bodyType} ${kind}`;
const shapeKey = ({ slot, protocol }: Case): string =>
  `${slot.shape.port}|${slot.shape.name}|${protocol}`;
const slotKey = ({ slot }: Case): string => `${slot.shape.port}|${slot.shape.name}|${slot.label}`;

export class Attack {
  /** By port, shape and slot. */
  readonly found = new Map<string, Worst>();
  /** By port, place and class of text. */
  readonly worst = new Map<string, Worst>();
  readonly statuses = new Map<number, number>();
  cases = 0;
  requests = 0;
  next: number;
  readonly #options: AttackOptions;
  readonly #start: () => Promise<Victims>;
  readonly #report: (line: string) => void;
  readonly #slots: readonly Slot[];
  /** What a request of a shape costs without a text, and a KiB of a slot. */
  readonly #bases = new Map<string, number>();
  readonly #usual = new Map<string, number>();
  /** Shapes whose response does not end. */
  readonly #endless = new Set<string>();
  #victims: Victims | undefined;
  #connections = new Map<string, Connections>();
  #sinceFresh = 0;
  #batches = 0;

  /**
   * @param slots where texts are put
   * @param start starts what is under attack
   * @param report called with lines
   */
  constructor(
    options: AttackOptions,
    slots: readonly Slot[],
    start: () => Promise<Victims>,
    report: (line: string) => void,
  ) {
    this.#options = options;
    this.#start = start;
    this.#report = report;
    this.next = options.from - (options.from % options.block);
    const order = [...slots];
    const random = new SeededRandom(options.seed);
    // In an order of the seed's, so that a part of a pass sees something of every port.
    for (let i = order.length - 1; i > 0; i--) {
      const j = random.below(i + 1);
      [order[i], order[j]] = [order[j], order[i]];
    }
    this.#slots = order;
  }

  get slotCount(): number {
    return this.#slots.length;
  }

  /** The case of a number; undefined where the slot has had all its variants. */
  caseOf(number: number): Case | undefined {
    const index = number % this.#slots.length;
    const pass = Math.floor(number / this.#slots.length);
    const random = new SeededRandom((this.#options.seed * 7_919 + number * 104_729) | 0);
    for (let i = 0; i < 5; i++) random.below(2);
    const slot = this.#slots[index];
    if (pass >= variantsOf(slot) * 2) return undefined;
    // In turn: the text and a breaker behind it, and the text between a head and a tail.
    const isBetween = pass % 2 === 1;
    const hasTail = isBetween || !random.oneIn(4);
    const filling: Filling = {
      unit: unitOf(Math.floor(pass / 2), index),
      head: isBetween ? random.pick(HEADS) : "",
      tail: hasTail ? random.pick(TAILS) : "",
      place: random.pick(PLACES),
      bytes: random.oneIn(8) && isHead(slot) ? BEYOND_HEAD : 0,
      isRaw: random.oneIn(4),
    };
    return { number, slot, filling, protocol: random.pick(this.#options.protocols) };
  }

  /** Runs for the time, or the number of cases, in the options. */
  async run(): Promise<void> {
    const { minutes, logEveryMs, cases, only } = this.#options;
    const startMs = performance.now();
    let loggedMs = startMs;
    const isLate = (): boolean => performance.now() - startMs > minutes * 60_000;
    try {
      while (!isLate() && (cases === 0 || this.cases < cases)) {
        const block: Case[] = [];
        for (let i = 0; i < this.#options.block; i++) {
          const one = this.caseOf(this.next + i);
          if (one === undefined) continue;
          if (`${one.slot.shape.port} ${one.slot.shape.name}`.includes(only)) block.push(one);
        }
        for (const batch of this.#batchesOf(block)) {
          if (isLate()) break;
          await this.#tryBatch(batch);
          const nowMs = performance.now();
          if (nowMs - loggedMs < logEveryMs) continue;
          loggedMs = nowMs;
          this.#report(this.#progress((nowMs - startMs) / 60_000));
        }
        this.next += this.#options.block;
        if (this.next > this.#slots.length * UNITS.length * 2) break;
      }
    } finally {
      await this.#restart();
    }
  }

  #progress(minutes: number): string {
    const statuses = [...this.statuses].sort(([a], [b]) => a - b);
    return (
      `${minutes.toFixed(1)} min: ${this.cases} cases, ${this.requests} requests, block from ` +
      `${this.next} of pass ${Math.floor(this.next / this.#slots.length)}; ` +
      `${this.found.size} found; ${statuses.map(([one, count]) => `${one}: ${count}`).join(", ")}`
    );
  }

  /** Cases of one port, protocol and kind of text together. */
  #batchesOf(block: readonly Case[]): Case[][] {
    const groups = new Map<string, Case[]>();
    for (const one of block) {
      const { slot, protocol, filling } = one;
      const kind = `${isHead(slot)}${isEntries(slot)}${filling.bytes > 0}`;
      const isEndless = this.#endless.has(shapeKey(one));
      const key = `${slot.shape.port}|${protocol}|${kind}|${isEndless}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [one]);
      else group.push(one);
    }
    const batches: Case[][] = [];
    for (const group of groups.values()) {
      const longest = ladderOf(group[0]).at(-1)!;
      const size = Math.max(1, Math.min(BATCH_REQUESTS, Math.floor(BATCH_BYTES / longest)));
      for (let at = 0; at < group.length; at += size) batches.push(group.slice(at, at + size));
    }
    return batches;
  }

  async #tryBatch(all: readonly Case[]): Promise<void> {
    this.cases += all.length;
    // What is found in a slot is found once; its texts hold the server for long.
    const batch = all.filter((one) => !this.found.has(slotKey(one)));
    if (batch.length === 0) return;
    for (const bytes of ladderOf(batch[0])) {
      // Where a short text costs too much, a long one may take for ever.
      if (await this.#search(batch, bytes)) break;
    }
    if (this.#batches++ % SAMPLED_BATCHES === 0) await this.#confirm(batch[0]);
  }

  /** What the shapes of the batch cost without a text. */
  async #learn(batch: readonly Case[]): Promise<void> {
    for (const one of batch) {
      const key = shapeKey(one);
      if (!this.#bases.has(key)) this.#bases.set(key, await this.#baseOf(one));
    }
  }

  async #baseOf(one: Case): Promise<number> {
    const copies = new Array<Case>(BASE_COPIES).fill(withoutText(one));
    return (await this.#spent(copies, 1)) / BASE_COPIES;
  }

  /** Looks for the expensive ones in a batch. Returns true if there is one. */
  async #search(batch: readonly Case[], bytes: number): Promise<boolean> {
    if ((await this.#spent(batch, bytes)) <= this.#allowed(batch, bytes)) return false;
    await this.#learn(batch);
    if ((await this.#spent(batch, bytes)) <= this.#allowed(batch, bytes)) return false;
    if (batch.length === 1) return this.#confirm(batch[0], bytes);
    const middle = batch.length >> 1;
    const inFirst = await this.#search(batch.slice(0, middle), bytes);
    const inSecond = await this.#search(batch.slice(middle), bytes);
    return inFirst || inSecond;
  }

  /** The processor time above which a batch is suspicious. */
  #allowed(batch: readonly Case[], bytes: number): number {
    let usual = 0;
    let leastKib = Number.POSITIVE_INFINITY;
    for (const one of batch) {
      const { kib } = this.#sentOf(one, bytes);
      usual += this.#bases.get(shapeKey(one)) ?? USUAL_MS;
      usual += kib * (this.#usual.get(slotKey(one)) ?? USUAL_MS_PER_KIB);
      leastKib = Math.min(leastKib, kib);
    }
    const share = isHead(batch[0].slot) ? SUSPICIOUS_SHARE.head : SUSPICIOUS_SHARE.body;
    const one = Math.max(NOISE_MS, share * this.#options.limitMsPerKib * leastKib);
    return usual * USUAL_FACTOR + one;
  }

  /** One case at growing lengths. @returns true if it costs more than the limit */
  async #confirm(one: Case, longestBytes = Number.POSITIVE_INFINITY): Promise<boolean> {
    const { limitMsPerKib } = this.#options;
    // Measured now: what a server shows of itself grows with what it has been asked.
    const base = Math.max(await this.#baseOf(one), await this.#baseOf(one));
    this.#bases.set(shapeKey(one), base);
    const ladder = ladderOf(one).filter((bytes) => bytes <= longestBytes);
    const { port } = one.slot.shape;
    let last: Worst | undefined;
    let worst: Worst | undefined;
    for (const bytes of [...ladder, ...longerOf(one, ladder)]) {
      const { kib } = this.#sentOf(one, bytes);
      let ms = Math.max(0, (await this.#least([one], bytes)) - base);
      if (ms / kib > limitMsPerKib && ms < SURE_MS) ms = await this.#inPairs(one, bytes);
      const exponent =
        last === undefined || last.ms < 0.3 || ms === 0 || last.kib === kib
          ? 0
          : Math.log(ms / last.ms) / Math.log(kib / last.kib);
      const msPerKib = ms < NOISE_MS / 2 ? 0 : ms / kib;
      const what = textOf(one, bytes);
      last = { port, label: one.slot.label, msPerKib, ms, kib, exponent, what };
      if (worst === undefined || msPerKib >= worst.msPerKib) worst = last;
      if (isOver(last, limitMsPerKib)) break;
      const grows = exponent > GROWTH_EXPONENT && msPerKib > GROWTH_MS_PER_KIB / 4;
      if (bytes >= ladder.at(-1)! && !grows && msPerKib < GROWTH_MS_PER_KIB) break;
    }
    if (last === undefined || worst === undefined) return false;
    const usual = Math.min(MAX_USUAL_MS_PER_KIB, worst.msPerKib);
    if (usual > (this.#usual.get(slotKey(one)) ?? USUAL_MS_PER_KIB))
      this.#usual.set(slotKey(one), usual);
    const row = `${one.slot.shape.port}|${placeOf(one.slot)}|${one.filling.unit}`;
    if (worst.msPerKib >= (this.worst.get(row)?.msPerKib ?? 0)) this.worst.set(row, worst);
    if (!isOver(last, limitMsPerKib)) return false;
    const known = this.found.get(slotKey(one));
    if (known === undefined) this.#report(`FOUND case ${one.number}: ${rowOf(last)}`);
    if (last.msPerKib > (known?.msPerKib ?? 0)) this.found.set(slotKey(one), last);
    return true;
  }

  /**
   * Beside the same request without a text, in turn: the median of the differences. What a page of
   * metrics costs varies by more than a short text may cost.
   */
  async #inPairs(one: Case, bytes: number): Promise<number> {
    const differences: number[] = [];
    for (let i = 0; i < PAIRS; i++) {
      const spent = await this.#spent([one], bytes);
      differences.push(spent - (await this.#spent([withoutText(one)], 1)));
    }
    differences.sort((a, b) => a - b);
    return Math.max(0, differences[PAIRS >> 1]);
  }

  /** The least of three, so that the work of another request does not count. */
  async #least(batch: readonly Case[], bytes: number): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 3; i++) {
      least = Math.min(least, await this.#spent(batch, bytes));
      if (least < NOISE_MS / 2 || least > SURE_MS) break;
    }
    return least;
  }

  #sentOf(one: Case, bytes: number): Sent {
    const { slot, filling, protocol } = one;
    const length = filling.bytes > 0 && bytes > 1 ? Math.max(bytes, filling.bytes) : bytes;
    const request = requestOf(slot, { ...filling, bytes: length }, protocol);
    return { one, request, kib: sizeOf(request) / 1024 };
  }

  #fill(request: RawRequest, token: string): RawRequest {
    const headers = request.headers.map(
      ([name, value]) => [name, value.replace("@ROOT@", token)] as const,
    );
    return { ...request, headers };
  }

  async #restart(): Promise<void> {
    for (const one of this.#connections.values()) one.close();
    this.#connections.clear();
    await this.#victims?.stop();
    this.#victims = undefined;
    this.#sinceFresh = 0;
  }

  /** Processor time of the target's processes for a batch with texts of a length. */
  async #spent(batch: readonly Case[], bytes: number): Promise<number> {
    if (this.#victims !== undefined && this.#sinceFresh >= this.#options.freshEvery)
      await this.#restart();
    this.#victims ??= await this.#start();
    const victims = this.#victims;
    this.#sinceFresh += batch.length;
    this.requests += batch.length;
    const { port } = batch[0].slot.shape;
    const target = victims.targets.get(port)!;
    const { protocol } = batch[0];
    const key = `${port}|${protocol}`;
    const connections = this.#connections.get(key) ?? new Connections(target.where, protocol);
    this.#connections.set(key, connections);
    const requests = batch.map((one) =>
      this.#fill(this.#sentOf(one, bytes).request, victims.rootToken),
    );
    const before = processorOf(target);
    const startMs = performance.now();
    const open = new Set<Case>();
    const underway = batch.map((one, i) => {
      const { ended, giveUp } = connections.send(requests[i]);
      open.add(one);
      const over = ended.then((status) => {
        open.delete(one);
        this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      });
      return { over, giveUp };
    });
    const all = Promise.all(underway.map(({ over }) => over)).then(() => true);
    let seen = before;
    let quietSinceMs = startMs;
    let left = batch.length;
    for (;;) {
      if (await Promise.race([all, delay(POLL_MS * 4, false)])) break;
      const now = processorOf(target);
      const nowMs = performance.now();
      if (now - seen > QUIET_PROCESSOR_MS || open.size < left) {
        quietSinceMs = nowMs;
        seen = now;
        left = open.size;
      }
      if (nowMs - quietSinceMs >= QUIET_MS) break;
      if (nowMs - startMs < HANG_LIMIT_MS) continue;
      this.#report(`given up after ${HANG_LIMIT_MS} ms at ${port}; the servers start again`);
      for (const { giveUp } of underway) giveUp();
      await this.#restart();
      return Math.max(now - before, HANG_LIMIT_MS);
    }
    for (const one of open) this.#endless.add(shapeKey(one));
    for (const { giveUp } of open.size > 0 ? underway : []) giveUp();
    // What is left to do behind the responses belongs to them.
    let spent = processorOf(target) - before;
    for (let i = 0; i < SETTLE_POLLS; i++) {
      await delay(POLL_MS);
      const now = processorOf(target) - before;
      const isSettled = now - spent < SETTLED_MS;
      spent = now;
      if (isSettled) break;
    }
    if (victims.hasEnded) {
      this.#report(`A SERVER HAS ENDED BY ITSELF (${port})\n${victims.logTails()}`);
      await this.#restart();
      return HANG_LIMIT_MS;
    }
    return spent;
  }
}

/** The same request with a text that costs nothing. */
function withoutText(one: Case): Case {
  const filling = { ...one.filling, unit: "a", head: "", tail: "", isRaw: false, bytes: 0 };
  return { ...one, filling };
}

/** Single characters in the first passes, then pieces of grammars; another one in each slot. */
function unitOf(round: number, index: number): string {
  if (round < SINGLES.length) return SINGLES[(round + index * 7) % SINGLES.length];
  return OTHERS[(round + index * 7) % OTHERS.length];
}

function isOver({ msPerKib, ms }: Worst, limitMsPerKib: number): boolean {
  return msPerKib > limitMsPerKib && ms > LEAST_FOUND_MS;
}

/** Lengths beyond those of every case; a head has none. */
function longerOf({ slot }: Case, ladder: readonly number[]): number[] {
  const longer: number[] = [];
  if (isHead(slot) || ladder.length === 0) return longer;
  for (let bytes = ladder.at(-1)! * 4; bytes <= LONGEST_BYTES; bytes *= 4) longer.push(bytes);
  return longer;
}

function ladderOf({ slot, filling }: Case): readonly number[] {
  if (filling.bytes > 0) return [filling.bytes];
  if (isHead(slot)) return HEAD_LADDER;
  return isEntries(slot) ? ENTRIES_LADDER : VALUE_LADDER;
}

function processorOf({ pids }: Target): number {
  let sum = 0;
  for (const pid of pids) {
    try {
      sum += processorMs(pid);
    } catch {
      // It has ended.
    }
  }
  return sum;
}

function textOf({ slot, filling, protocol }: Case, bytes: number): string {
  const { unit, head, tail, place, isRaw } = filling;
  return (
    `${slot.shape.name} over ${protocol}: ${shown(head)} + ${Math.round(bytes)} bytes of ` +
    `${shown(unit)} + ${shown(tail)}, ${place}${isRaw ? ", raw" : ""}`
  );
}

/** A line of the table. */
export function rowOf({ port, label, msPerKib, ms, kib, exponent, what }: Worst): string {
  return (
    `${msPerKib.toFixed(3)} ms/KiB (${ms.toFixed(1)} ms, ${kib.toFixed(0)} KiB, ` +
    `exponent ${exponent.toFixed(1)}) ${port}, ${label}: ${what}`
  );
}
