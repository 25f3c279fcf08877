/** What the contract suite of StorageInterface asks of an implementation. */
import assert from "node:assert/strict";
import test from "node:test";
import { concat, equals, fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../../src/meta/object.ts";
import type { Untransformed, ValueTransformer } from "../../src/storage/codec.ts";
import { StorageError, type StorageErrorCode } from "../../src/storage/errors.ts";
import type { ListOptions, StorageInterface, Watch } from "../../src/storage/interface.ts";
import type { StoredObject } from "../../src/storage/stored-object.ts";
import { keyOfPod, listOptions } from "../example-pods.ts";
import { WatchRecorder } from "../watch-recorder.ts";

/** Puts a prefix before values, and refuses those without it. */
export class PrefixTransformer implements ValueTransformer {
  prefix = "test:";
  stale = false;

  toStorage(_key: string, value: Uint8Array): Uint8Array {
    return concat([fromUtf8(this.prefix), value]);
  }

  fromStorage(_key: string, value: Uint8Array): Untransformed {
    const prefix = fromUtf8(this.prefix);
    if (!equals(value.subarray(0, prefix.length), prefix))
      throw new Error("value does not have expected prefix");
    return { value: value.subarray(prefix.length), stale: this.stale };
  }
}

/** A storage of pods (example-pods.ts), empty, with its values under `transformer`. */
export interface StorageUnderTest {
  readonly storage: StorageInterface;
  readonly transformer: PrefixTransformer;
  /** History before this revision goes. */
  compact(revision: number): Promise<void>;
  /** A write outside the resource. Resolves with its revision. */
  increaseRevision(): Promise<number>;
  /** Lets time pass where it is the test's; a real cluster has its own. */
  advance(ms: number): void;
  close(): Promise<void>;
}

export interface StorageContractOptions {
  /** Makes an empty storage; called by each test. */
  open(): Promise<StorageUnderTest>;
  /** It reads from a cache: reads at "0" may be behind, and values are decrypted below it. */
  readonly isCache?: boolean;
}

/** Declares a test with a storage of its own. */
export type Case = (name: string, run: (it: StorageUnderTest) => Promise<void>) => void;

export function casesOf(prefix: string, options: StorageContractOptions): Case {
  return (name, run) => {
    test(`${prefix}: ${name}`, async () => {
      const it = await options.open();
      try {
        await run(it);
      } finally {
        await it.close();
      }
    });
  };
}

/** Creates an object at its key. */
export function create(it: StorageUnderTest, object: KubeObject): Promise<StoredObject> {
  return it.storage.create(keyOfPod(object), object, 0);
}

/** Updates with a function that only changes metadata. */
export function change(
  it: StorageUnderTest,
  key: string,
  metadata: Partial<KubeObject["metadata"]>,
): Promise<StoredObject> {
  return it.storage.guaranteedUpdate(
    key,
    (present) => ({
      object: { ...present!, metadata: { ...present!.metadata, ...metadata } },
    }),
    { ignoreNotFound: false },
  );
}

/** Names of a list, in order. */
export function namesOf({ items }: { readonly items: readonly StoredObject[] }): string[] {
  return items.map((item) => {
    const { namespace = "", name } = item.object().metadata;
    return namespace === "" ? name! : `${namespace}/${name}`;
  });
}

export async function rejectsWith(work: Promise<unknown>, code: StorageErrorCode): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof StorageError, `not a StorageError: ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return true;
  });
}

export async function record(
  it: StorageUnderTest,
  key: string,
  options: Partial<ListOptions> = {},
): Promise<WatchRecorder> {
  const watch: Watch = await it.storage.watch(key, listOptions(options));
  return new WatchRecorder(watch);
}
