/**
 * A member's store made to differ from the others' behind its back: the value of one record is
 * another, as a store's own defect or a bit of memory might leave it. No checksum is wrong, every
 * revision fits: only a comparison with the other members shows it.
 */
import type { Random } from "@quorate/host";
import type { MemoryKeyspaceOpener } from "@quorate/host/testing";
import { defined, equals, KeyValue, toLatin1 } from "@quorate/proto";

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

export interface SabotageDeps {
  readonly keyspaces: MemoryKeyspaceOpener;
  readonly random: Random;
  readonly storePath: string;
  report(text: string): void;
}

export class Sabotage {
  readonly #deps: SabotageDeps;
  readonly #done: Alteration[] = [];

  constructor(deps: SabotageDeps) {
    this.#deps = deps;
  }

  /** Alters a record; false if there is none yet. */
  alter(): boolean {
    const { keyspaces, random, storePath, report } = this.#deps;
    const records = keyspaces.records(storePath);
    const places = [...(records?.keys() ?? [])]
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
    const kv = KeyValue.decode(defined(records!.get(place), "the record")[1]);
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
    const records = this.#deps.keyspaces.records(this.#deps.storePath);
    return this.#done.filter(({ place, value }) => {
      const now = records?.get(place)?.[1];
      return now !== undefined && equals(now, value);
    });
  }
}
