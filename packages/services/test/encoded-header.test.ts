/** Headers of responses that are encoded without their objects have the bytes of the codec. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { PutResponse, type ResponseHeader } from "@quorate/proto";
import { EncodedHeader } from "../src/calls/results.ts";

const NUMBERS = [0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 35 - 1, 2 ** 35, 2 ** 53 - 1];

test("a header with a revision has the bytes that the codec writes", () => {
  for (const id of [1n, 2n ** 64n - 1n]) {
    for (const raftTerm of NUMBERS) {
      const headerOf = (revision: number): ResponseHeader => ({
        clusterId: id,
        memberId: 2n ** 63n,
        revision,
        raftTerm,
      });
      const member = { header: headerOf, term: raftTerm } as unknown as Member;
      const encoded = new EncodedHeader(member);
      for (const revision of NUMBERS) {
        const expected = PutResponse.encode({ header: headerOf(revision) });
        assert.deepEqual([...encoded.at(revision)], [...expected], `${revision} ${raftTerm}`);
      }
    }
  }
});
