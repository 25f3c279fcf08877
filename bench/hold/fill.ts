/** Fills a store: transactions of many puts, some under way at a time. */
import { fromUtf8, GrpcCode, KVService, PutRequest, type TxnRequest } from "@quorate/proto";
import { CallError, type TestClient } from "../../test/support/client.ts";
import { keyOf, randomValue } from "../keys.ts";

/** Keys of one transaction, and such transactions under way. */
const FILL_OPS = 100;
const FILL_CALLS = 32;
const LIMIT_MS = 180_000;
const MAX_ATTEMPTS = 5;
/** Random bytes of which values are parts. */
const POOL_BYTES = 2 ** 22;

/** Runs `task` for each number below `total`, some at a time. */
export async function each(
  total: number,
  atOnce: number,
  task: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < total) await task(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, total) }, work));
}

/** Some of the keys of a letter: `total` from number `first` on. */
export interface Numbers {
  readonly first: number;
  readonly total: number;
}

/** Puts keys of a letter, each with the value that `valueAt` gives its number. */
export async function putMany(
  client: TestClient,
  letter: string,
  numbers: Numbers,
  valueAt: (i: number) => Uint8Array,
  lease = 0n,
): Promise<void> {
  const end = numbers.first + numbers.total;
  await each(Math.ceil(numbers.total / FILL_OPS), FILL_CALLS, (part) => {
    const first = numbers.first + part * FILL_OPS;
    const success = Array.from({ length: Math.min(FILL_OPS, end - first) }, (_, i) => ({
      request: {
        case: "requestPut" as const,
        value: PutRequest.create({
          key: keyOf(letter, first + i),
          value: valueAt(first + i),
          lease,
        }),
      },
    }));
    return putAgain(client, { compare: [], success, failure: [] });
  });
}

/** Makes a transaction of puts until it succeeds: a store that is filled for long may pause. */
async function putAgain(client: TestClient, txn: TxnRequest): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.call(KVService.methods.Txn, txn, LIMIT_MS);
      return;
    } catch (error) {
      const isBusy = error instanceof CallError && error.code === GrpcCode.Unavailable;
      if (!isBusy || attempt === MAX_ATTEMPTS) throw error;
      console.error(`a transaction of the filling is made again: ${error.details}`);
    }
  }
}

/** Values of so many bytes, whose order is not that of the keys. */
export function unsortedValues(sizeBytes: number): (i: number) => Uint8Array {
  const filler = randomValue(sizeBytes);
  return (i) => {
    const value = Uint8Array.from(filler);
    value.set(fromUtf8(String((i * 7_919) % 1_000_003).padStart(7, "0")), 0);
    return value;
  };
}

/** Values of so many bytes that do not compress, neither alone nor beside each other. */
export function distinctValues(sizeBytes: number): (i: number) => Uint8Array {
  const pool = randomValue(POOL_BYTES + sizeBytes);
  return (i) => {
    const at = (i * 7_919) % POOL_BYTES;
    return pool.subarray(at, at + sizeBytes);
  };
}
