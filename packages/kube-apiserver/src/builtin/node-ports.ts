/**
 * Ports of nodes that Services have (kubernetes: registry/core/service/portallocator). One object
 * has a bit for each port of the range, written by compare-and-swap, at kube-apiserver's key:
 *
 *     /registry/ranges/servicenodeports   { range: "30000-32767", data: a big-endian number }
 */
import type { Random } from "@quorate/host";
import {
  builtinSpec,
  internalError,
  type KubeObject,
  kindSource,
  NAME_AND_AGE,
  plainStrategy,
  type ResourceSpec,
  type StorageInterface,
} from "@quorate/kube-storage";
import { defined, fromBase64, toBase64 } from "@quorate/proto";
import { textOf } from "./rules/rules.ts";
import { NotAllocated } from "./service-addresses.ts";

const KEY = "/ranges/servicenodeports";
const MIN_STATIC = 16;
const MAX_STATIC = 128;
/** Where a dry run's ports begin, which stand for any. */
const FIRST_DRY_PORT = 32_768;

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** The resource that the object is stored as. */
export function portRangeSpec(): ResourceSpec {
  const source = kindSource("", "v1", "RangeAllocation");
  const { kind } = source;
  const options = { kind, namespaced: false, hasStatus: false, countsGenerations: false };
  return builtinSpec(source, "rangeallocations", {
    namespaced: false,
    storagePrefix: "ranges",
    strategy: plainStrategy(options),
    table: NAME_AND_AGE,
  });
}

/** The ports of one attempt to write them. */
export class PortSet {
  readonly taken: number[] = [];
  readonly #range: PortRange;
  readonly #random: Random;
  readonly #dryRun: boolean;
  /** A bit for each port, the first port's is the lowest one of the first byte. */
  readonly #bits: Uint8Array;
  readonly #dry = new Set<number>();
  #lastDry = FIRST_DRY_PORT;
  #isChanged = false;

  /** @param bits of another length stand for as many as there are */
  constructor(range: PortRange, bits: Uint8Array, random: Random, dryRun = false) {
    this.#range = range;
    this.#bits = new Uint8Array(Math.ceil((range.last - range.first + 1) / 8));
    this.#bits.set(bits.subarray(0, this.#bits.length));
    this.#random = random;
    this.#dryRun = dryRun;
  }

  get isChanged(): boolean {
    return this.#isChanged;
  }

  get bits(): Uint8Array {
    return this.#bits;
  }

  /** Throws NotAllocated. */
  take(port: number): void {
    const { first, last } = this.#range;
    const isIn = port >= first && port <= last;
    if (!isIn && !this.#dryRun) {
      const why = `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
      throw new NotAllocated(why);
    }
    if ((isIn && this.has(port)) || this.#dry.has(port))
      throw new NotAllocated("provided port is already allocated");
    if (this.#dryRun) {
      this.#dry.add(port);
      this.#lastDry = Math.max(this.#lastDry, port);
    } else this.#set(port);
    this.taken.push(port);
  }

  /** Throws NotAllocated. */
  takeAny(): number {
    if (this.#dryRun) {
      this.#lastDry++;
      this.taken.push(this.#lastDry);
      return this.#lastDry;
    }
    const size = this.#range.last - this.#range.first + 1;
    const part = Math.min(Math.max(Math.floor(size / 32), MIN_STATIC), MAX_STATIC);
    const staticSize = size <= MIN_STATIC ? 0 : part;
    const port = this.#freeIn(staticSize, size) ?? this.#freeIn(0, staticSize);
    if (port === undefined) throw new NotAllocated("range is full");
    this.#set(port);
    this.taken.push(port);
    return port;
  }

  release(port: number): void {
    const { first, last } = this.#range;
    if (port < first || port > last || !this.has(port)) return;
    const at = port - first;
    this.#bits[at >> 3] = (this.#bits[at >> 3] ?? 0) & ~(1 << (at & 7));
    this.#isChanged = true;
  }

  has(port: number): boolean {
    const at = port - this.#range.first;
    return (((this.#bits[at >> 3] ?? 0) >> (at & 7)) & 1) === 1;
  }

  #set(port: number): void {
    const at = port - this.#range.first;
    this.#bits[at >> 3] = (this.#bits[at >> 3] ?? 0) | (1 << (at & 7));
    this.#isChanged = true;
  }

  #freeIn(begin: number, end: number): number | undefined {
    const count = end - begin;
    if (count === 0) return undefined;
    const start = this.#random.below(count);
    for (let tried = 0; tried < count; tried++) {
      const port = this.#range.first + begin + ((start + tried) % count);
      if (!this.has(port)) return port;
    }
    return undefined;
  }
}

/** Go writes a number's bytes with the highest first, and no zeros before them. */
function dataOf(bits: Uint8Array): string {
  const end = bits.findLastIndex((byte) => byte !== 0) + 1;
  return toBase64(bits.slice(0, end).reverse());
}

function bitsOf(object: KubeObject | undefined): Uint8Array {
  const data = textOf(object?.["data"]);
  return defined(fromBase64(data), "bytes in base64").slice().reverse();
}

export class NodePorts {
  readonly range: PortRange;
  readonly #storage: StorageInterface;
  readonly #random: Random;

  /** @param storage of portRangeSpec */
  constructor(range: PortRange, storage: StorageInterface, random: Random) {
    this.range = range;
    this.#storage = storage;
    this.#random = random;
  }

  /**
   * Takes and releases ports. Rejects with what `plan` throws, and StorageError.
   * @param plan called again after a conflict, with the ports that are then present
   * @param dryRun writes nothing
   */
  async change<T>(dryRun: boolean, plan: (ports: PortSet) => T): Promise<T> {
    const ports = (present: KubeObject | undefined): PortSet =>
      new PortSet(this.range, bitsOf(present), this.#random, dryRun);
    if (dryRun) return plan(ports(await this.present()));
    return await this.#write((present) => {
      if (present !== undefined && present["range"] !== this.#rangeText)
        throw internalError("the provided port range does not match the current port range");
      const set = ports(present);
      return { result: plan(set), set };
    });
  }

  /** What is stored: to be given to `rebuild`. */
  async present(): Promise<KubeObject | undefined> {
    return (await this.#storage.get(KEY, { ignoreNotFound: true }))?.object();
  }

  /**
   * Writes the ports anew, unless another one has written since.
   * @param before what `present` was
   */
  async rebuild(before: KubeObject | undefined, plan: (ports: PortSet) => void): Promise<void> {
    const same = before?.["range"] === this.#rangeText;
    const { versioner } = this.#storage;
    await this.#write((present) => {
      const wanted = before === undefined ? 0 : versioner.resourceVersionOf(before);
      const found = present === undefined ? 0 : versioner.resourceVersionOf(present);
      const set = new PortSet(this.range, same ? bitsOf(before) : new Uint8Array(), this.#random);
      if (wanted === found) plan(set);
      return { result: undefined, set, isNew: wanted === found && !same };
    });
  }

  get #rangeText(): string {
    return `${this.range.first}-${this.range.last}`;
  }

  async #write<T>(
    make: (present: KubeObject | undefined) => { result: T; set: PortSet; isNew?: boolean },
  ): Promise<T> {
    let result: T | undefined;
    await this.#storage.guaranteedUpdate(
      KEY,
      (present) => {
        const empty = { apiVersion: "v1", kind: "RangeAllocation", metadata: {} };
        const made = make(present);
        result = made.result;
        const object = present ?? empty;
        if (present !== undefined && !made.set.isChanged && made.isNew !== true) return { object };
        const data = dataOf(made.set.bits);
        return { object: { ...object, range: this.#rangeText, data } };
      },
      { ignoreNotFound: true },
    );
    return result as T;
  }
}
