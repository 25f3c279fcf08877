/**
 * A naive model of the store for point-in-time tests: random changes, and for each revision
 * everything that existed then, as plain copies. Revisions are counted as etcd counts them; a test
 * that sends the changes to a cluster compares the revision in the response.
 */
import {
  fromLatin1,
  KeyValue,
  KVService,
  LeaseService,
  type MethodDescriptor,
  RequestOp,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import type { SeededRandom } from "./random.ts";

export interface ModelValue {
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
  readonly lease: bigint;
}

/** What existed at a revision. */
export interface ModelState {
  readonly keys: ReadonlyMap<string, ModelValue>;
  /** Times to live by lease. */
  readonly leases: ReadonlyMap<bigint, number>;
}

/** A change of a revision, as a watch or the store returns it. */
export interface ModelChange {
  readonly deleted: boolean;
  readonly record: Uint8Array;
}

/** One request and the revision that the store has afterwards. */
export interface ModelStep {
  readonly method: MethodDescriptor;
  readonly request: object;
  readonly revision: number;
}

export class KvModel {
  readonly #random: SeededRandom;
  readonly #states = new Map<number, ModelState>();
  readonly #changes = new Map<number, ModelChange[]>();
  #keys = new Map<string, ModelValue>();
  #leases = new Map<bigint, number>();
  #revision = 1;
  #nextLease = 100n;

  constructor(random: SeededRandom) {
    this.#random = random;
    this.#keep();
  }

  get revision(): number {
    return this.#revision;
  }

  /** As of the last request that left the store at that revision. */
  at(revision: number): ModelState {
    return this.#states.get(revision)!;
  }

  changesOf(revision: number): readonly ModelChange[] {
    return this.#changes.get(revision) ?? [];
  }

  /** The next request. */
  step(): ModelStep {
    const dice = this.#random.below(100);
    if (dice < 6) return this.#grant();
    if (dice < 9 && this.#leases.size > 2) return this.#revoke();
    if (dice < 20) return this.#deleteRange();
    if (dice < 40) return this.#txn();
    const [key, value, lease] = this.#randomPut();
    return this.#write(
      KVService.methods.Put,
      { key: fromLatin1(key), value: fromLatin1(value), lease },
      [{ key, value, lease }],
    );
  }

  #randomKey(): string {
    return `${this.#random.pick(["a", "b", "c/", "d\xff"])}${this.#random.below(9)}`;
  }

  #randomPut(): [key: string, value: string, lease: bigint] {
    const lease =
      this.#leases.size > 0 && this.#random.oneIn(5)
        ? this.#random.pick([...this.#leases.keys()])
        : 0n;
    const length = this.#random.oneIn(30) ? 9000 : this.#random.below(30);
    return [
      this.#randomKey(),
      String.fromCharCode(33 + this.#random.below(200)).repeat(length),
      lease,
    ];
  }

  #grant(): ModelStep {
    const ID = this.#nextLease++;
    const TTL = 5000 + this.#random.below(5000);
    this.#leases.set(ID, TTL);
    this.#keep();
    return {
      method: LeaseService.methods.LeaseGrant,
      request: { ID, TTL },
      revision: this.#revision,
    };
  }

  #revoke(): ModelStep {
    const ID = this.#random.pick([...this.#leases.keys()]);
    this.#leases.delete(ID);
    const keys = [...this.#keys].filter(([, { lease }]) => lease === ID).map(([key]) => key);
    return this.#write(
      LeaseService.methods.LeaseRevoke,
      { ID },
      keys.sort().map((key) => ({ key })),
    );
  }

  #deleteRange(): ModelStep {
    const [from, to] = [this.#randomKey(), this.#randomKey()];
    const single = this.#random.oneIn(2);
    const keys = [...this.#keys.keys()]
      .filter((key) => (single ? key === from : key >= from && key < to))
      .sort();
    const request = {
      key: fromLatin1(from),
      rangeEnd: single || to <= from ? new Uint8Array(0) : fromLatin1(to),
    };
    const gone = single || to > from ? keys : [...this.#keys.keys()].filter((key) => key === from);
    return this.#write(
      KVService.methods.DeleteRange,
      request,
      gone.map((key) => ({ key })),
    );
  }

  #txn(): ModelStep {
    const ops = new Map<string, RequestOp>();
    const changes: { key: string; value?: string; lease?: bigint }[] = [];
    for (let i = 1 + this.#random.below(5); i > 0; i--) {
      const [key, value, lease] = this.#randomPut();
      if (ops.has(key)) continue;
      if (this.#random.oneIn(3)) {
        ops.set(
          key,
          RequestOp.create({
            request: {
              case: "requestDeleteRange",
              value: { key: fromLatin1(key), rangeEnd: new Uint8Array(0), prevKv: false },
            },
          }),
        );
        if (this.#keys.has(key)) changes.push({ key });
      } else {
        const put = {
          key: fromLatin1(key),
          value: fromLatin1(value),
          lease,
          prevKv: false,
          ignoreValue: false,
          ignoreLease: false,
        };
        ops.set(key, RequestOp.create({ request: { case: "requestPut", value: put } }));
        changes.push({ key, value, lease });
      }
    }
    return this.#write(
      KVService.methods.Txn,
      TxnRequest.create({ success: [...ops.values()] }),
      changes,
    );
  }

  #write(
    method: MethodDescriptor,
    request: object,
    changes: readonly { key: string; value?: string; lease?: bigint }[],
  ): ModelStep {
    if (changes.length > 0) {
      this.#revision++;
      this.#changes.set(
        this.#revision,
        changes.map((change) => this.#apply(change)),
      );
    }
    this.#keep();
    return { method, request, revision: this.#revision };
  }

  #apply({ key, value, lease = 0n }: { key: string; value?: string; lease?: bigint }): ModelChange {
    if (value === undefined) {
      this.#keys.delete(key);
      return { deleted: true, record: KeyValue.encode({ key: fromLatin1(key) }) };
    }
    const before = this.#keys.get(key);
    const now = {
      value,
      create: before?.create ?? this.#revision,
      mod: this.#revision,
      version: (before?.version ?? 0) + 1,
      lease,
    };
    this.#keys.set(key, now);
    return { deleted: false, record: encodeValue(key, now) };
  }

  #keep(): void {
    this.#states.set(this.#revision, { keys: new Map(this.#keys), leases: new Map(this.#leases) });
  }
}

function encodeValue(key: string, { value, create, mod, version, lease }: ModelValue): Uint8Array {
  return KeyValue.encode({
    key: fromLatin1(key),
    value: fromLatin1(value),
    createRevision: create,
    modRevision: mod,
    version,
    lease,
  });
}

/** Keys as the model has them, from stored records. */
export function toModelKeys(records: readonly Uint8Array[]): Map<string, ModelValue> {
  return new Map(
    records.map((bytes) => {
      const { key, value, createRevision, modRevision, version, lease } = KeyValue.decode(bytes);
      return [
        toLatin1(key),
        { value: toLatin1(value), create: createRevision, mod: modRevision, version, lease },
      ];
    }),
  );
}
