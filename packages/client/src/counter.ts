/** A number that many programs add to, as a decimal text under one key. */
import { check, INTEGER } from "@quorate/host";
import { CodedError } from "@quorate/proto";
import type { Client } from "./client.ts";
import type { Bytes } from "./requests.ts";
import type { TransactionOptions } from "./transaction.ts";

/** The key holds something else, or the sum would be beyond 2^53. */
export class NotACountError extends CodedError<"NotACount"> {
  constructor(value: string) {
    super("NotACountError", "NotACount", `${JSON.stringify(value.slice(0, 40))} is no count`);
  }
}

/**
 * Adds to the number and returns the sum; a key that is not there counts as 0. Rejects with
 * NotACountError, and as Client.transaction() does.
 */
export function addTo(
  client: Client,
  key: Bytes,
  amount: number,
  options?: TransactionOptions,
): Promise<number> {
  check("addTo", "amount", amount, INTEGER);
  return client.transaction(async (transaction) => {
    const present = (await transaction.getText(key)) ?? "0";
    const sum = Number(present) + amount;
    if (!/^-?\d+$/.test(present) || !Number.isSafeInteger(sum)) throw new NotACountError(present);
    transaction.put(key, String(sum));
    return sum;
  }, options);
}
