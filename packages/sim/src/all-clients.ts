/** The clients of a run, of each kind. */
import type { SeededRandom } from "@quorate/host";
import type { SimOptions } from "./base/options.ts";
import type { Scheduler } from "./base/scheduler.ts";
import type { CorruptionCheck } from "./check/corruption.ts";
import type { LeaseCheck } from "./check/lease-lives.ts";
import type { Safety } from "./check/safety.ts";
import { SpaceCheck } from "./check/space.ts";
import type { WatchCheck } from "./check/watches.ts";
import type { ClientNetwork } from "./client-network.ts";
import { Clients } from "./clients.ts";
import type { Exchanges } from "./exchanges.ts";
import { HostileClients } from "./hostile-clients.ts";
import { LeaseClients } from "./lease-clients.ts";
import type { Node } from "./node.ts";
import type { Story } from "./report/story.ts";
import { StreamClients } from "./stream-clients.ts";
import type { Users } from "./users/users.ts";
import { WatchClients } from "./watch-clients.ts";

export interface AllClients {
  readonly clients: Clients;
  readonly watchClients: WatchClients;
  readonly leaseClients: LeaseClients;
  readonly hostileClients: HostileClients;
  readonly streamClients: StreamClients;
}

export interface AllClientsDeps {
  readonly nodes: Node[];
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly safety: Safety;
  /** The network for clients that may do everything. */
  readonly network: Exchanges;
  readonly clientNetwork: ClientNetwork;
  readonly random: SeededRandom;
  readonly users: Users | undefined;
  readonly leaseCheck: LeaseCheck;
  readonly corruptionCheck: CorruptionCheck;
  readonly watchCheck: WatchCheck;
  fail(error: unknown): void;
}

/** Makes the clients; each kind has random numbers of its own. */
export function makeClients(options: SimOptions, deps: AllClientsDeps): AllClients {
  const { random, users, leaseCheck, corruptionCheck, watchCheck, clientNetwork, ...shared } = deps;
  const mixed = (rootPercent: number) => users?.mixed(rootPercent) ?? clientNetwork;
  const clients = new Clients(options, {
    ...shared,
    network: mixed(50),
    random: random.fork("clients"),
    decorate: (request) => users?.decorate(request) ?? request,
    leaseCheck,
    corruptionCheck,
    spaceCheck: new SpaceCheck(options.quotaBytes, shared.safety),
  });
  const watchClients = new WatchClients(options, {
    ...shared,
    random: random.fork("watch clients"),
    check: watchCheck,
  });
  const leaseClients = new LeaseClients(options, {
    ...shared,
    network: mixed(70),
    random: random.fork("lease clients"),
    clients,
    check: leaseCheck,
  });
  const hostileClients = new HostileClients(options, {
    ...shared,
    network: mixed(30),
    random: random.fork("hostile clients"),
    clients,
  });
  const streamClients = new StreamClients(options, {
    ...shared,
    network: mixed(50),
    random: random.fork("stream clients"),
    clients,
  });
  return { clients, watchClients, leaseClients, hostileClients, streamClients };
}
