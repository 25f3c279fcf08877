/**
 * Users and roles in a run: the administrator, logins, clients of all identities, and the judge of
 * what they are permitted.
 */

import type { Random } from "@quorate/host";
import { defined } from "@quorate/proto";
import type { ModelOp, ModelRequest } from "../base/model.ts";
import type { SimOptions } from "../base/options.ts";
import type { Scheduler } from "../base/scheduler.ts";
import type { LeaseCheck } from "../check/lease-lives.ts";
import type { Safety } from "../check/safety.ts";
import type { ClientNetwork } from "../client-network.ts";
import type { Clients } from "../clients.ts";
import type { Exchanges } from "../exchanges.ts";
import type { Node } from "../node.ts";
import type { Story } from "../report/story.ts";
import { Administrator, USERS } from "./administrator.ts";
import { byCertificate, bySession, type Identity, NO_IDENTITY } from "./identity.ts";
import { PermissionCheck } from "./permission-check.ts";
import { Sessions } from "./sessions.ts";
import { UserClients } from "./user-clients.ts";
import { UserNetwork } from "./user-network.ts";
import { UserWatches } from "./user-watches.ts";

const WATCHERS = 3;
/** Calls at each member when all is at rest. */
const EXAM_CALLS = 12;
/** Of clients that keep a run going. */
const TRUSTED: ReadonlySet<string> = new Set(["healer", "sweeper", "operator"]);
const ROOT = byCertificate("root");

export interface UsersDeps {
  readonly nodes: readonly Node[];
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly random: Random;
  readonly network: ClientNetwork;
  readonly safety: Safety;
  /** Something is wrong. */
  fail(error: unknown): void;
}

export class Users {
  readonly #options: SimOptions;
  readonly #deps: UsersDeps;
  readonly #random: Random;
  readonly #passwords = new Map<string, string>();
  readonly #prevRandom: Random;
  readonly check: PermissionCheck;
  readonly #network: UserNetwork;
  readonly #sessions: Sessions;
  readonly #administrator: Administrator;
  readonly #watches: UserWatches;
  #clients: UserClients | undefined;

  constructor(options: SimOptions, deps: UsersDeps) {
    this.#options = options;
    this.#deps = deps;
    const { random, safety, scheduler, fail } = deps;
    this.#random = random.fork("identities");
    this.#prevRandom = random.fork("prev_kv");
    this.check = new PermissionCheck(options, safety, () => scheduler.nowMs);
    this.#network = this.#networkOf(() => this.#anyone());
    const shared = { ...deps, check: this.check, passwords: this.#passwords };
    const ask = this.#network.ask.bind(this.#network);
    this.#sessions = new Sessions(options, { ...shared, random: random.fork("sessions"), ask });
    this.#administrator = new Administrator(options, {
      ...shared,
      random: random.fork("administrator"),
      book: safety.users,
      ask,
      root: ROOT,
      besidePassword: (user, password) => {
        for (let i = 0; i < 3; i++) {
          const delayMs = i * 8;
          const login = () => void this.#sessions.login(user, password).catch(fail);
          scheduler.after(delayMs, login);
        }
      },
      beside: (node, key) => {
        for (let i = 0; i < 4; i++) this.#clients?.beside(node, key).catch(fail);
      },
      anyone: () => this.#anyone(),
    });
    this.#watches = new UserWatches(options, {
      ...shared,
      random: random.fork("watches"),
      network: this.#network,
      latencyMs: 2 * (options.latencyMs + options.jitterMs),
      anyone: () => this.#anyone(),
      fail,
    });
  }

  get counts() {
    const { check } = this;
    const { counts: watches } = this.#watches;
    const { changes, refusedEntries } = this.#deps.safety.users.counts;
    return {
      changes,
      refusedEntries,
      served: check.counts.served,
      refused: check.counts.refused,
      anonymous: check.counts.anonymous,
      logins: this.#sessions.counts.logins,
      watchesRevoked: watches.revoked,
      watchEvents: watches.events,
    };
  }

  /** The network for those who run the cluster. */
  get trusted(): Exchanges {
    return this.#networkOf(() => ROOT);
  }

  /** The network for clients of whatever identity, of which so many in a hundred are root's. */
  mixed(rootPercent: number): Exchanges {
    return this.#networkOf((client) => {
      if (client !== undefined && TRUSTED.has(client)) return ROOT;
      return this.#random.below(100) < rootPercent && client !== "user" ? ROOT : this.#anyone();
    });
  }

  #networkOf(pick: (client: string | undefined) => Identity): UserNetwork {
    const { network, fail } = this.#deps;
    return new UserNetwork({
      network,
      fail,
      check: this.check,
      pick,
      refused: (identity, name) => {
        const { session } = identity;
        const isOver = name === "InvalidAuthToken" || name === "AuthOldRevision";
        if (session !== undefined && isOver) this.#sessions.drop(session);
      },
    });
  }

  #anyone(): Identity {
    const random = this.#random;
    const user = USERS[random.below(USERS.length)];
    switch (random.below(16)) {
      case 0:
        return NO_IDENTITY;
      case 1:
        return this.#sessions.forged();
      case 2:
        return byCertificate("eve");
      case 3:
      case 4: {
        const old = this.#sessions.anyOld;
        return old === undefined ? NO_IDENTITY : bySession(old);
      }
      case 5:
      case 6:
      case 7:
      case 8:
        return byCertificate(user);
      case 9: {
        const root = this.#sessions.of("root");
        return root === undefined ? ROOT : bySession(root);
      }
      case 10: {
        const provided = this.#sessions.ofProvider;
        if (provided !== undefined) return provided;
        return byCertificate(user);
      }
      default: {
        const session = this.#sessions.of(user);
        return session === undefined ? byCertificate(user) : bySession(session);
      }
    }
  }

  /** The request, now and then with the keys as they were. */
  decorate(request: ModelRequest): ModelRequest {
    if (request.kind === "revoke") return request;
    return this.#decorated(request);
  }

  #decorated(op: ModelOp): ModelOp {
    if (op.kind === "txn") {
      const [success, failure] = [op.success, op.failure].map((ops) =>
        ops.map((one) => this.#decorated(one)),
      );
      return { ...op, success, failure };
    }
    if (op.kind === "range" || this.#prevRandom.below(3) > 0) return op;
    return { ...op, prevKv: true };
  }

  start(clients: Clients, leaseCheck: LeaseCheck): void {
    const { fail, random } = this.#deps;
    this.#clients = new UserClients(this.#options, {
      ...this.#deps,
      clients,
      leaseCheck,
      network: this.#network,
      random: random.fork("user clients"),
      anyone: () => this.#anyone(),
    });
    const all = [
      this.#administrator.work(),
      this.#sessions.work(),
      this.#clients.work(),
      ...Array.from({ length: WATCHERS }, (_, i) => this.#watches.work(`uw${i}`)),
    ];
    for (const one of all) one.catch(fail);
  }

  /** All is healed: enforcement is on, and what each member serves is looked at. */
  async settle(): Promise<void> {
    await this.#administrator.settle();
    for (const user of USERS) await this.#sessions.login(user, this.#passwords.get(user));
    for (const node of [...this.#deps.nodes]) {
      if (node.refused || node.gone) continue;
      for (let i = 0; i < EXAM_CALLS; i++) await defined(this.#clients, "the clients").one(node);
    }
  }

  /** No more calls; those under way end. */
  stop(): void {
    this.#administrator.stop();
    this.#sessions.stop();
    this.#watches.stop();
    this.#clients?.stop();
  }
}
