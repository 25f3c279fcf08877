/**
 * Locks and elections of clients with identities, on three members, while permission comes and
 * goes: nothing is served that was permitted at no time of the call, nothing refused that was
 * permitted all the time, and who waits without permission does not win.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AuthService,
  ElectionService,
  fromUtf8,
  KVService,
  LeaseService,
  LockService,
  type MethodDescriptor,
  toUtf8,
} from "@quorate/proto";
import type { CallContext } from "@quorate/rpc";
import { callAs, enableAuth, login } from "./support/users.ts";
import { World } from "./support/world.ts";

const { Lock, Unlock } = LockService.methods;
const { Campaign, Leader, Proclaim, Resign } = ElectionService.methods;
const { UserGrantRole, UserRevokeRole } = AuthService.methods;
const { LeaseGrant, LeaseRevoke } = LeaseService.methods;
const b = fromUtf8;
const USERS = ["ann", "bob"] as const;
const DENIED = /permission denied/;
const SEED = 14;
const STEPS = 120;

/** What a user may from the call of one change on, to the end of the next one's. */
interface Span {
  readonly from: number;
  until: number;
  readonly roles: ReadonlySet<string>;
}

/** Calls of all users, with the moments of their beginning and end. */
class Contest {
  readonly world = new World(3);
  readonly #tokens = new Map<string, string>();
  readonly #spans = new Map<string, Span[]>();
  #moment = 0;
  #leases = 0n;
  readonly counts = { served: 0, refused: 0, waited: 0 };

  async start(): Promise<void> {
    await this.world.startAll();
    await this.world.run(20);
    await enableAuth(this.world, this.#member(0), ...USERS);
    for (const user of [...USERS, "root"]) await this.token(user);
    for (const user of USERS) {
      const roles = new Set([user]);
      this.#spans.set(user, [{ from: 0, until: Number.POSITIVE_INFINITY, roles }]);
    }
  }

  #member(i: number) {
    return this.world.nodes[i % 3].member!;
  }

  async token(user: string): Promise<string> {
    const known = this.#tokens.get(user);
    if (known !== undefined) return known;
    const token = await this.world.settled(login(this.#member(0), user));
    this.#tokens.set(user, token);
    await this.world.run(20);
    return token;
  }

  /** A call that is not waited for. */
  ask<M extends MethodDescriptor>(
    user: string,
    at: number,
    method: M,
    request: object,
    context: Partial<CallContext> = {},
  ) {
    const token = this.#tokens.get(user)!;
    return callAs(this.#member(at), token, method, request as never, context);
  }

  async lease(user: string, at: number): Promise<bigint> {
    const ID = ++this.#leases;
    await this.world.settled(this.ask(user, at, LeaseGrant, { ID, TTL: 600 }));
    await this.world.run(20);
    return ID;
  }

  /** Ends a lease, if there is one still. */
  async end(ID: bigint): Promise<void> {
    await this.ask("root", 0, LeaseRevoke, { ID }).catch(() => {});
  }

  async change(user: string, role: string, isGranted: boolean): Promise<void> {
    const spans = this.#spans.get(user)!;
    const last = spans[spans.length - 1];
    if (last.roles.has(role) === isGranted) return;
    const roles = new Set(last.roles);
    if (isGranted) roles.add(role);
    else roles.delete(role);
    spans.push({ from: this.#moment++, until: Number.POSITIVE_INFINITY, roles });
    const [method, request] = isGranted
      ? [UserGrantRole, { user, role }]
      : [UserRevokeRole, { name: user, role }];
    await this.world.settled(this.ask("root", 0, method as typeof UserGrantRole, request));
    // Members that lag decide by what they have applied.
    await this.world.run(20);
    last.until = this.#moment++;
  }

  may(user: string, role: string): boolean {
    return this.#spans.get(user)!.at(-1)!.roles.has(role);
  }

  /** Judges a call when it ends. */
  async judged(user: string, role: string, call: Promise<unknown>): Promise<boolean> {
    const begin = this.#moment++;
    let error: Error | undefined;
    await call.catch((one: Error) => {
      error = one;
    });
    const end = this.#moment++;
    const verdicts = this.#spans
      .get(user)!
      .filter(({ from, until }) => from <= end && until >= begin)
      .map(({ roles }) => roles.has(role));
    const isRefused = error !== undefined && DENIED.test(error.message);
    if (isRefused) {
      this.counts.refused++;
      assert.ok(
        verdicts.includes(false),
        `${user} is refused what ${role} may: ${begin} to ${end}`,
      );
    } else if (error === undefined) {
      this.counts.served++;
      assert.ok(verdicts.includes(true), `${user} is served what ${role} may: ${begin} to ${end}`);
    }
    return error === undefined;
  }
}

/** Numbers from a seed (xorshift). */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

test(`locks and elections of random users while permission changes (seed ${SEED})`, async () => {
  const contest = new Contest();
  const { world } = contest;
  await contest.start();
  const below = random(SEED);
  const won: { key: Uint8Array; rev: number; owner: string; lease: bigint }[] = [];
  for (let step = 0; step < STEPS; step++) {
    const [user, owner] = [USERS[below(2)], USERS[below(2)]];
    const at = below(3);
    const name = b(`${owner}/${below(3)}`);
    const one = won[below(Math.max(1, won.length))];
    switch (below(8)) {
      case 0:
      case 1:
        await contest.change(user, owner, below(3) > 0);
        break;
      case 2:
      case 3:
      case 4: {
        // It may wait; then permission may end while it does.
        const lease = await contest.lease(user, at);
        let giveUp = () => {};
        const context = { onCancel: (listener: () => void) => (giveUp = listener) };
        const value = b(`${step}`);
        const call =
          below(2) === 0
            ? contest.ask(user, at, Lock, { name, lease }, context)
            : contest.ask(user, at, Campaign, { name, lease, value }, context);
        let isOver = false;
        const judged = contest.judged(user, owner, call).finally(() => {
          isOver = true;
        });
        await world.run(50);
        if (!isOver) {
          contest.counts.waited++;
          await contest.change(user, owner, below(2) === 0);
          await world.run(200);
          if (!contest.may(user, owner)) assert.ok(isOver, "it waits without permission");
          giveUp();
          await world.settled(contest.end(lease));
        }
        if (await world.settled(judged)) {
          const { key, leader } = (await call) as { key?: Uint8Array; leader?: never };
          const found = (leader ?? { key, rev: 0 }) as { key: Uint8Array; rev: number };
          won.push({ ...found, owner, lease });
        }
        break;
      }
      case 5:
        await world.settled(contest.judged(user, owner, contest.ask(user, at, Leader, { name })));
        break;
      case 6: {
        if (one === undefined) break;
        const leader = { name, key: one.key, rev: one.rev, lease: one.lease };
        const call = contest.ask(user, at, Proclaim, { leader, value: b("new") });
        await world.settled(contest.judged(user, one.owner, call));
        break;
      }
      default: {
        if (one === undefined) break;
        const { key, rev, lease } = one;
        const call =
          rev === 0
            ? contest.ask(user, at, Unlock, { key })
            : contest.ask(user, at, Resign, { leader: { name, key, rev, lease } });
        if (await world.settled(contest.judged(user, one.owner, call)))
          won.splice(won.indexOf(one), 1);
        // A holder that has nothing to do with this step lets go, so that others win.
        else await world.settled(contest.end(lease));
      }
    }
  }
  const { served, refused, waited } = contest.counts;
  assert.ok(served > 10 && refused > 20 && waited > 3, JSON.stringify(contest.counts));
  await world.stopAll();
});

test("permission that ends while a caller waits ends its wait, and the lock goes to the next", async () => {
  const contest = new Contest();
  const { world } = contest;
  await contest.start();
  await contest.change("bob", "ann", true);
  const name = b("ann/jobs");
  const leases: bigint[] = [];
  for (const user of ["ann", "bob", "ann"]) leases.push(await contest.lease(user, 0));
  const first = await world.settled(contest.ask("ann", 0, Lock, { name, lease: leases[0] }));
  const ends: string[] = [];
  const wait = (user: string, at: number, lease: bigint) =>
    contest.ask(user, at, Lock, { name, lease }).then(
      ({ key }) => ends.push(`${user} has ${toUtf8(key)}`),
      (error: Error) => ends.push(`${user}: ${error.message}`),
    );
  void wait("bob", 1, leases[1]);
  await world.run(50);
  void wait("ann", 2, leases[2]);
  await world.run(50);
  assert.deepEqual(ends, []);
  await contest.change("bob", "ann", false);
  await world.until(() => ends.length === 1);
  assert.match(ends[0], /^bob: .*permission denied/);
  // Its place goes with its lease, as that of any client that is gone.
  await world.settled(contest.ask("root", 0, LeaseRevoke, { ID: leases[1] }));
  await world.settled(contest.ask("ann", 0, Unlock, { key: first.key }));
  await world.until(() => ends.length === 2);
  assert.equal(ends[1], `ann has ann/jobs/${leases[2].toString(16)}`);
  const { kvs } = await world.settled(
    contest.ask("root", 0, KVService.methods.Range, { key: b("ann/"), rangeEnd: b("ann0") }),
  );
  assert.equal(kvs.length, 1);
  await world.stopAll();
});
