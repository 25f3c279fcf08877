/** Passwords, failed logins and simple tokens: rules, bounds, and that hashes hold up nothing. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { LoginLimits, MAX_RUNNING_HASHES, type PasswordHasher } from "@quorate/member";
import {
  ADDRESS_FAILURES,
  indexOfToken,
  KEPT_GUESSES,
  MAX_COUNTED_FAILURES,
  MAX_SHOWN_PASSWORDS,
  MAX_TOKENS,
  MAX_TOKENS_OF_ONE_USER,
  MAX_WAITING_HASHES,
  MAX_WAITING_HASHES_OF_ONE_CLIENT,
  Passwords,
  SHOWN_PASSWORD_MS,
  ShownPasswords,
  SimpleTokens,
  simpleTokenPrefix,
  USER_FAILURES,
} from "@quorate/member/testing";
import { fromUtf8 } from "@quorate/proto";
import { bcryptHasher, hashThreads } from "../node/bcrypt-hasher.ts";

const CALLER = { client: "10.0.0.1", cancelled: false };

const passwordsOf = (hasher: PasswordHasher, clock = new ManualClock()): Passwords =>
  new Passwords({ hasher, threads: 1, clock, randomBytes }, 4);

test("hashes are Go's, on a thread of their own", async (t) => {
  const hasher = bcryptHasher(1);
  t.after(() => hasher.close());
  const passwords = passwordsOf(hasher);
  const hash = await passwords.hash("secret", CALLER);
  assert.match(hash, /^\$2a\$04\$.{53}$/);
  const stored = fromUtf8(hash);
  assert.equal(await passwords.verify("secret", stored, CALLER), true);
  assert.equal(await passwords.verify("Secret", stored, CALLER), false);
  assert.equal(await passwords.verify("secret", undefined, CALLER), false);
  assert.equal(await passwords.verify("no user has this password", undefined, CALLER), false);
  // Made by golang.org/x/crypto/bcrypt, with a zero byte and with letters beyond ASCII.
  for (const [password, made] of GO_HASHES) {
    assert.equal(await passwords.verify(password, fromUtf8(made), CALLER), true);
  }
  for (const none of ["", "$2a$04$short", "x".repeat(60), "$2a$99$".padEnd(60, "x")]) {
    assert.equal(await passwords.verify("secret", fromUtf8(none), CALLER), false);
  }
  const tooLong = /^StatusError: bcrypt: password length exceeds 72 bytes$/;
  await assert.rejects(passwords.hash("é".repeat(37), CALLER), tooLong);
  assert.match(await passwords.hash("é".repeat(36), CALLER), /^\$2a\$/);
});

const GO_HASHES = [
  ["secret", "$2a$04$B.VjCEksMiTuYCF7winsZOR4GOhup/QAB2WhmRdqVwwROY.RgZswa"],
  ["a\0b", "$2a$04$nUruBVq9QKvIHrHUUtyV6eLcPtkJo7o.ENf0ww.FpAk1rD4IwFsX."],
  ["pässwörd", "$2a$04$qRSF9ffiXoQGSXhipfyFSO2.8kHKY0ghpFxFwZZZN1OY3phax.w8a"],
] as const;

test("hashes have the priority of the process: a login ends on a busy processor too", {
  skip: process.platform !== "linux" && "only Linux shows the priority of threads",
}, async (t) => {
  const hasher = bcryptHasher(1);
  t.after(() => hasher.close());
  await hasher.hash("x", 4);
  // proc(5): the 19th field, counted from behind the name, which may have blanks.
  const niceOf = (thread: string): number =>
    Number(
      readFileSync(`/proc/self/task/${thread}/stat`, "utf8").split(") ").at(-1)!.split(" ")[16],
    );
  const nices = readdirSync("/proc/self/task").map(niceOf);
  assert.ok(nices.length > 1);
  assert.deepEqual([...new Set(nices)], [getPriority()]);
});

test("a thread that fails fails its jobs alone, and the next job has another one", async (t) => {
  const hasher = bcryptHasher(1);
  t.after(() => hasher.close());
  await assert.rejects(hasher.hash(7 as unknown as string, 4), /^Error: bcrypt: /);
  const lost = hasher.hash("x", 14);
  // It may be asked to end before it has begun.
  await new Promise((resolve) => setImmediate(resolve));
  hasher.close();
  await assert.rejects(lost, /the thread for password hashes has ended/);
  assert.match(await hasher.hash("x", 4), /^\$2a\$04\$/);
});

/** A hasher whose jobs end on demand. */
function heldHasher(): { hasher: PasswordHasher; jobs: (() => void)[] } {
  const jobs: (() => void)[] = [];
  const held = () => new Promise<void>((resolve) => jobs.push(resolve));
  return {
    jobs,
    hasher: {
      hash: async () => held().then(() => "$2a$04$"),
      verify: async () => held().then(() => true),
      close: () => {},
    },
  };
}

test("an unknown user takes as long as a wrong password: a hash of the same cost is computed", async (t) => {
  const asked: string[] = [];
  const hasher = bcryptHasher(1);
  t.after(() => hasher.close());
  const verify = (password: string, hash: string) => {
    asked.push(hash);
    return hasher.verify(password, hash);
  };
  const passwords = passwordsOf({ ...hasher, verify });
  const root = fromUtf8(await hasher.hash("of root", 10));
  const took: number[] = [];
  const login = async (hash: Uint8Array | undefined, like?: Uint8Array): Promise<string> => {
    const [before] = [process.cpuUsage(), asked.splice(0)];
    assert.equal(await passwords.verify("wrong", hash, CALLER, like), false);
    const { user, system } = process.cpuUsage(before);
    took.push((user + system) / 1000);
    assert.equal(asked.length, 1);
    assert.equal(asked[0].length, 60);
    return asked[0].slice(0, 7);
  };
  assert.equal(await login(root, root), "$2a$10$");
  assert.equal(await login(undefined, root), "$2a$10$", "the cost of root's");
  assert.equal(await login(undefined), "$2a$04$");
  const [wrong, unknown, cheap] = took;
  // A hash of cost 10 takes 64 times that of cost 4: the decoy's is computed indeed.
  assert.ok(unknown > wrong / 3 && unknown > cheap * 3, `${took.join(", ")} ms`);
});

test("a password that was right a short time ago costs no hash; a wrong one, or of another hash, does", async () => {
  const clock = new ManualClock();
  let asked = 0;
  const hasher: PasswordHasher = {
    hash: async (password) => password,
    verify: async (password, hash) => {
      asked++;
      return hash.startsWith(`${password} `);
    },
    close: () => {},
  };
  const passwords = passwordsOf(hasher, clock);
  const ask = async (password: string, hash: string | undefined): Promise<[boolean, number]> => {
    const before = asked;
    const stored = hash === undefined ? undefined : fromUtf8(hash);
    return [await passwords.verify(password, stored, CALLER), asked - before];
  };
  assert.deepEqual(await ask("secret", "secret 1"), [true, 1]);
  for (let i = 0; i < 5; i++) assert.deepEqual(await ask("secret", "secret 1"), [true, 0]);
  assert.deepEqual(await ask("Secret", "secret 1"), [false, 1]);
  assert.deepEqual(await ask("Secret", "secret 1"), [false, 1], "a wrong one is not kept");
  assert.deepEqual(await ask("secret", "secret 2"), [true, 1], "of another user");
  assert.deepEqual(await ask("secret", "new 3"), [false, 1], "the user has another password");
  assert.deepEqual(await ask("secret", undefined), [false, 1]);
  clock.advance(SHOWN_PASSWORD_MS - 1);
  assert.deepEqual(await ask("secret", "secret 1"), [true, 0]);
  clock.advance(1);
  assert.deepEqual(await ask("secret", "secret 1"), [true, 1], "logins do not make it longer");
});

test("passwords that were shown are bounded: the one that was checked longest ago is forgotten", () => {
  const shown = new ShownPasswords({ clock: new ManualClock(), randomBytes });
  const hash = fromUtf8("h");
  for (let i = 0; i <= MAX_SHOWN_PASSWORDS; i++) shown.note(`p${i}`, hash);
  assert.equal(shown.size, MAX_SHOWN_PASSWORDS);
  assert.deepEqual(
    ["p0", "p1", `p${MAX_SHOWN_PASSWORDS}`].map((one) => shown.has(one, hash)),
    [false, true, true],
  );
});

test("few hashes are computed at once; those who wait are bounded, and take turns", async () => {
  const { hasher, jobs } = heldHasher();
  const passwords = passwordsOf(hasher);
  const done: string[] = [];
  const ask = (client: string) =>
    passwords
      .verify("x", fromUtf8("h"), { client, cancelled: false })
      .then(() => done.push(client));
  const asked = [ask("a")];
  for (let i = 0; i < MAX_WAITING_HASHES_OF_ONE_CLIENT; i++) asked.push(ask("a"));
  await assert.rejects(ask("a"), { code: "TooManyRequests" });
  asked.push(ask("b"));
  assert.equal(jobs.length, 1);
  for (let i = 0; passwords.waiting < MAX_WAITING_HASHES; i++) asked.push(ask(`c${i % 8}`));
  await assert.rejects(ask("d"), { code: "TooManyRequests" });
  for (let i = 0; i < asked.length; i++) {
    assert.equal(jobs.length, i + 1);
    jobs[i]();
    await asked[0];
    while (jobs.length === i + 1 && i + 1 < asked.length) await Promise.resolve();
  }
  await Promise.all(asked);
  assert.ok(done.indexOf("b") < 5, `b came ${done.indexOf("b")}th`);
  assert.ok(hashThreads() <= MAX_RUNNING_HASHES);
});

test("no hash is computed for a caller that has gone", async () => {
  const { hasher, jobs } = heldHasher();
  const passwords = passwordsOf(hasher);
  const gone = { client: "a", cancelled: true };
  await assert.rejects(passwords.verify("x", fromUtf8("h"), gone), { code: "Canceled" });
  await assert.rejects(passwords.hash("x", gone), { code: "Canceled" });
  assert.equal(jobs.length, 0);
});

test("failed logins are limited for a user from an address, and for an address", () => {
  const limits = new LoginLimits();
  for (let i = 0; i < USER_FAILURES.burst; i++) {
    assert.equal(limits.mayTry("ann", "A", 0), true);
    limits.failed("ann", "A", 0);
  }
  assert.equal(limits.mayTry("ann", "A", 0), false);
  assert.equal(limits.mayTry("ann", "B", 0), true);
  assert.equal(limits.mayTry("bob", "A", 0), true);
  assert.equal(limits.mayTry("ann", "A", USER_FAILURES.refillMs + 1), true);
  limits.failed("ann", "A", USER_FAILURES.refillMs + 1);
  assert.equal(limits.mayTry("ann", "A", USER_FAILURES.refillMs + 2), false);
  limits.succeeded("ann", "A");
  assert.equal(limits.mayTry("ann", "A", USER_FAILURES.refillMs + 2), true);
  for (let i = 0; i < ADDRESS_FAILURES.burst; i++) limits.failed(`u${i}`, "C", 0);
  assert.equal(limits.mayTry("any", "C", 0), false);
  assert.equal(limits.mayTry("any", "C", 2 * ADDRESS_FAILURES.refillMs), true);
  // A user that has shown its password from there is not held up by others' failures.
  limits.succeeded("root", "C");
  assert.equal(limits.mayTry("root", "C", 0), true);
  assert.equal(limits.mayTry("any", "C", 0), false);
  for (let i = 0; i < USER_FAILURES.burst; i++) limits.failed("root", "C", 0);
  assert.equal(limits.mayTry("root", "C", 0), false);
  assert.equal(limits.mayUseKept("root", "C", 0), true);
  for (let i = 0; i < KEPT_GUESSES.burst; i++) limits.refused("root", "C", 0);
  assert.equal(limits.mayUseKept("root", "C", 0), false);
  assert.equal(limits.refusals, KEPT_GUESSES.burst);
  for (let i = 0; i < 2 * MAX_COUNTED_FAILURES; i++) {
    limits.failed("u", `a${i}`, 0);
    limits.refused("u", `a${i}`, 0);
    limits.succeeded("v", `a${i}`);
  }
  assert.equal(limits.size, 4 * MAX_COUNTED_FAILURES);
});

test("a proxy says whom it serves only where it is trusted, by its address or its certificate", () => {
  const limits = new LoginLimits(new Set(["10.0.0.5", "::1", "CN=edge"]));
  const party = (peerAddress: string, field?: string, peerCommonName?: string) =>
    limits.partyOf({ peerAddress, peerCommonName, metadata: () => field });
  assert.equal(party("10.0.0.5:1", "192.0.2.1"), "10.0.0.5 for 192.0.2.1");
  assert.equal(party("10.0.0.5:1", "192.0.2.9, 2001:db8::1"), "10.0.0.5 for 2001:db8::1");
  assert.equal(party("[::1]:7", "192.0.2.1"), "::1 for 192.0.2.1");
  assert.equal(party("10.0.0.7:1", "192.0.2.1", "edge"), "CN edge for 192.0.2.1");
  assert.equal(party("10.0.0.7:1", "192.0.2.1", "ann"), "CN ann");
  assert.equal(party("10.0.0.7:1", "192.0.2.1"), "10.0.0.7");
  for (const field of [undefined, "", "192.0.2.1,", "a host", "1".repeat(65)])
    assert.equal(party("10.0.0.5:1", field), "10.0.0.5");
  const none = new LoginLimits();
  const caller = { peerAddress: "10.0.0.5:1", peerCommonName: undefined };
  assert.equal(none.partyOf({ ...caller, metadata: () => "192.0.2.1" }), "10.0.0.5");
});

test("a simple token is sixteen letters and an index; it ends unless it is used", () => {
  assert.match(simpleTokenPrefix(randomBytes), /^[a-zA-Z]{16}$/);
  // Bytes beyond the letters' multiple are passed over, so that all letters are equally likely.
  let next = 0;
  assert.equal(
    simpleTokenPrefix(() => Uint8Array.of(255, 208, 207, next++)),
    "ZaZbZcZdZeZfZgZh",
  );
  assert.deepEqual(
    ["abc.7", "abc.", "abc", "a.b.7", "abc.-7", "x.99999999999999999"].map(indexOfToken),
    [7, ...Array(5).fill(undefined)],
  );
  const clock = new ManualClock();
  const tokens = new SimpleTokens(clock, 10);
  tokens.assign("ann", "x.1");
  tokens.assign("bob", "y.2");
  tokens.assign("bob", "z.3");
  clock.advance(9000);
  assert.equal(tokens.userOf("x.1"), "ann");
  clock.advance(2000);
  assert.deepEqual(
    [tokens.userOf("x.1"), tokens.userOf("y.2"), tokens.size],
    ["ann", undefined, 1],
  );
  tokens.assign("bob", "z.4");
  tokens.invalidate("ann");
  assert.deepEqual([tokens.userOf("x.1"), tokens.userOf("z.4")], [undefined, "bob"]);
  tokens.clear();
  assert.equal(tokens.userOf("z.4"), undefined);
});

test("who logs in all the time ends no token of another user", () => {
  const tokens = new SimpleTokens(new ManualClock(), 10);
  tokens.assign("root", "r.1");
  for (const name of ["ann", "bob", "ann", "bob"])
    for (let i = 0; i < MAX_TOKENS_OF_ONE_USER; i++)
      tokens.assign(name, `${name}.${i}.${tokens.size}`);
  assert.deepEqual([tokens.size, tokens.userOf("r.1")], [MAX_TOKENS, "root"]);
});

test("tokens are bounded: the oldest ends, and those that ended are forgotten", () => {
  const clock = new ManualClock();
  const tokens = new SimpleTokens(clock, 10);
  for (let i = 0; i <= MAX_TOKENS_OF_ONE_USER; i++) tokens.assign("ann", `a.${i}`);
  assert.deepEqual([tokens.size, tokens.userOf("a.0")], [MAX_TOKENS_OF_ONE_USER, undefined]);
  for (let i = 0; i <= MAX_TOKENS; i++) tokens.assign(`u${i}`, `u.${i}`);
  assert.deepEqual(
    [tokens.size, tokens.userOf("u.0"), tokens.userOf("u.1")],
    [MAX_TOKENS, undefined, "u1"],
  );
  clock.advance(11_000);
  for (let i = 0; i < 20 && tokens.size > 0; i++) clock.advance(1000);
  assert.equal(tokens.size, 0);
});
