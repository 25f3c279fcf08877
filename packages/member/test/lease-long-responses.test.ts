/** A lease with very many keys: what members send each other about it is made in short steps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fromLatin1,
  LeaseTimeToLiveResponse,
  leasepb,
  ResponseHeader,
  WireError,
} from "@quorate/proto";
import { STEP_KEYS, type Steps } from "@quorate/store";
import { decodeInternal, encodeInternal, sortedKeys } from "../src/lease/long-responses.ts";

/** The result, and how many steps it took. */
function counted<T>(steps: Steps<T>): { value: T; count: number } {
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return { value: step.value, count };
  }
}

const responseOf = (keys: Uint8Array[]): LeaseTimeToLiveResponse =>
  LeaseTimeToLiveResponse.create({ ID: -7n, TTL: 1234, grantedTTL: 5678, keys });

for (const keyCount of [0, 1, STEP_KEYS, 20 * STEP_KEYS + 5]) {
  test(`a response with ${keyCount} keys is encoded and decoded in steps`, () => {
    const names = Array.from({ length: keyCount }, (_, i) => `key-${i}`);
    const sorted = counted(sortedKeys(names.toReversed()));
    const keys = sorted.value;
    if (keyCount < 2) assert.equal(sorted.count, 1);
    assert.deepEqual(keys, names.toSorted().map(fromLatin1));
    // Members of etcd need a header.
    const response = { ...responseOf(keys), header: ResponseHeader.create() };
    const encoded = counted(encodeInternal(response));
    assert.deepEqual(
      encoded.value,
      leasepb.LeaseInternalResponse.encode({ LeaseTimeToLiveResponse: response }),
    );
    assert.equal(encoded.count, Math.ceil(keyCount / STEP_KEYS) + 1);
    const decoded = counted(decodeInternal(encoded.value));
    assert.deepEqual(decoded.value, response);
    for (const { count } of [encoded, decoded])
      assert.ok(count >= Math.floor(keyCount / STEP_KEYS) || keyCount <= STEP_KEYS, `${count}`);
  });
}

test("a long body that is cut short or is something else is refused", () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => fromLatin1(`key-${i}`));
  const body = counted(encodeInternal(responseOf(keys))).value;
  for (const length of [body.length - 1, body.length >> 1, 40_000])
    assert.throws(() => counted(decodeInternal(body.subarray(0, length))), WireError);
  const other = Uint8Array.from(body);
  other[0] = 0x12;
  assert.equal(counted(decodeInternal(other)).value, undefined);
});
