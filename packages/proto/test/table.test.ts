/** Codecs by table: what they refuse, and how they merge, to the error that generated code has. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AuthRoleGetResponse,
  AuthUserGetResponse,
  CompactionRequest,
  MemberListResponse,
  ResponseHeader,
  raftpb,
  WireError,
} from "../index.ts";
import type { MessageType } from "../src/wire/message.ts";
import { Reader, TooMuchWorkError } from "../src/wire/reader.ts";

function refused<T>(type: MessageType<T>, bytes: readonly number[], message: string): void {
  assert.throws(
    () => type.decode(Uint8Array.from(bytes)),
    (error) => error instanceof WireError && error.message === message,
  );
}

test("malformed messages are refused with message, field and offset", () => {
  const roles = "etcdserverpb.AuthUserGetResponse.roles";
  refused(AuthUserGetResponse, [0x12, 2, 0xff, 0xfe], `${roles}: invalid UTF-8 at byte 2`);
  refused(AuthUserGetResponse, [0x12, 5, 1], `${roles}: length past the end at byte 1`);
  refused(AuthUserGetResponse, [0x10, 1], `${roles}: wrong wire type 0 at byte 1`);
  refused(
    AuthUserGetResponse,
    [0x0a, 2, 0x18, 0x80],
    "etcdserverpb.ResponseHeader.revision: truncated varint at byte 3",
  );
  refused(
    AuthUserGetResponse,
    [0x0b],
    "etcdserverpb.AuthUserGetResponse.header: wrong wire type 3 at byte 1",
  );
  refused(
    MemberListResponse,
    [0x12, 2, 0x0a, 0],
    "etcdserverpb.Member.ID: wrong wire type 2 at byte 3",
  );
});

test("unknown fields are skipped, and a number beyond the safe integers is the nearest one", () => {
  const bytes = [0x98, 0x06, 1, 0x08, ...Array<number>(8).fill(0xff), 0x7f];
  const { revision, physical } = CompactionRequest.decode(Uint8Array.from(bytes));
  assert.deepEqual({ revision, physical }, { revision: Number.MAX_SAFE_INTEGER, physical: false });
});

test("a message that comes twice is merged, and a list takes both forms", () => {
  const header = (of: Partial<ResponseHeader>): number[] => {
    const bytes = ResponseHeader.encode(of);
    return [0x0a, bytes.length, ...bytes];
  };
  const merged = AuthRoleGetResponse.decode(
    Uint8Array.from([...header({ revision: 5 }), ...header({ raftTerm: 7 })]),
  );
  assert.deepEqual(merged.header, ResponseHeader.create({ revision: 5, raftTerm: 7 }));
  const state = raftpb.ConfState.decode(Uint8Array.from([0x08, 1, 0x0a, 2, 2, 3, 0x08, 4]));
  assert.deepEqual(state.voters, [1n, 2n, 3n, 4n]);
});

test("the first decoding of a type may go into a message that exists", () => {
  const into = { transition: 0, changes: [], context: new Uint8Array(0) };
  raftpb.ConfChangeV2.decodeFrom(new Reader(Uint8Array.of(0x08, 1)), into);
  assert.equal(into.transition, 1);
});

test("a reader's limit of work holds in codecs by table", () => {
  const list = Uint8Array.from(Array.from({ length: 20 }, () => [0x12, 0]).flat());
  assert.throws(() => MemberListResponse.decodeFrom(new Reader(list, 50)), TooMuchWorkError);
  assert.equal(MemberListResponse.decodeFrom(new Reader(list, 500)).members.length, 20);
});

test("numbers that do not fit are refused when they are written", () => {
  assert.throws(() => CompactionRequest.encode({ revision: 2 ** 60 }), RangeError);
  assert.throws(() => MemberListResponse.encode({ members: [{ ID: -1n } as never] }), RangeError);
});
