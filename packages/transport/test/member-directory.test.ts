/** Whom a member takes for another member, and when it asks the others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ASK_INTERVAL_MS,
  type AskMembers,
  MemberDirectory,
  type ReportedMember,
} from "../src/member-directory.ts";

const MEMBER_URLS = ["http://known"];
const REPORTED_URLS = ["http://reported"];

/** A directory that knows member 1, and the questions that it asks. */
function directory() {
  const asked: { tell(members: readonly ReportedMember[]): void; end(): void }[] = [];
  let nowMs = 0;
  const askMembers: AskMembers = (_peerUrls, reported) => {
    const answered = Promise.withResolvers<void>();
    asked.push({ tell: reported, end: answered.resolve });
    return answered.promise;
  };
  const known = new MemberDirectory({
    monotonicMs: () => nowMs,
    knownUrls: (id) => (id === 1n ? MEMBER_URLS : undefined),
    localUrls: ["http://local"],
    peerUrls: () => MEMBER_URLS,
    askMembers,
  });
  /** The last question's answer has come. */
  const end = async (): Promise<void> => {
    asked.at(-1)!.end();
    await new Promise(setImmediate);
  };
  const at = (ms: number): void => {
    nowMs = ms;
  };
  return { known, asked, end, at };
}

const fitsAll = () => true;
const fitsNone = () => false;

test("a sender that others report is a member as soon as one of them says so", async () => {
  const { known, asked, end } = directory();
  assert.equal(known.standingOf(1n, fitsAll), "member");
  assert.equal(asked.length, 0);
  assert.equal(known.standingOf(2n, fitsAll), "asking");
  asked[0].tell([{ id: 3n, peerUrls: [] }]);
  assert.equal(known.standingOf(2n, fitsAll), "asking", "the question is still open");
  asked[0].tell([{ id: 2n, peerUrls: REPORTED_URLS }]);
  assert.equal(known.standingOf(2n, fitsAll), "member", "another answer is still to come");
  assert.equal(
    known.standingOf(2n, (urls) => urls !== REPORTED_URLS),
    "asking",
  );
  await end();
  assert.equal(asked.length, 1);
  assert.equal(known.standingOf(2n, fitsAll), "member");
  assert.equal(known.standingOf(2n, fitsNone), "certificate");
  known.applied(2n);
  assert.equal(known.standingOf(2n, fitsAll), "unknown", "what was said of it is out of date");
});

test("the others are asked again 500 ms after their answer, and not before", async () => {
  const { known, asked, end, at } = directory();
  assert.equal(known.standingOf(2n, fitsAll), "asking");
  at(1000);
  await end();
  at(1000 + ASK_INTERVAL_MS - 1);
  assert.equal(known.standingOf(2n, fitsAll), "unknown");
  assert.equal(known.standingOf(1n, fitsNone), "certificate");
  assert.equal(known.isSomeMembers(fitsNone), false);
  assert.equal(asked.length, 1);
  at(1000 + ASK_INTERVAL_MS);
  assert.equal(known.isSomeMembers(fitsNone), false);
  assert.equal(asked.length, 2);
});

test("who is not reported any more is forgotten, unless nobody responds", async () => {
  const { known, asked, end, at } = directory();
  known.standingOf(2n, fitsAll);
  asked[0].tell([{ id: 2n, peerUrls: REPORTED_URLS }]);
  await end();
  at(ASK_INTERVAL_MS);
  known.isSomeMembers(fitsNone);
  await end();
  assert.deepEqual(known.reportedUrls(2n), REPORTED_URLS);
  at(2 * ASK_INTERVAL_MS);
  known.isSomeMembers(fitsNone);
  asked[2].tell([{ id: 3n, peerUrls: [] }]);
  await end();
  assert.equal(known.reportedUrls(2n), undefined);
  const seen: (readonly string[])[] = [];
  known.isSomeMembers((urls) => seen.push(urls) < 0);
  assert.deepEqual(seen, [["http://local", ...MEMBER_URLS]]);
});
