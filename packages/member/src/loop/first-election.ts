/**
 * Shortens the first election timeout after a start (--initial-election-tick-advance). A follower
 * waits 1 to 2 election timeouts for a leader; one that has just started and reaches its peers has
 * already waited for the connections.
 *
 *     start  . . . .  two peers are connected: all but 2 ticks of one election timeout pass at once
 *
 * Without a connection it would have no effect, so it is given up after a while. Raft ignores it
 * where a leader is known. Source: etcd, server/etcdserver/server.go (adjustTicks).
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import type { Raft } from "@quorate/raft";
import type { Transport } from "@quorate/transport";
import type { LoopTurns } from "./turns.ts";

/** How often the connections are counted, and how many times at the most: 5 seconds. */
export const FIRST_ELECTION_LOOK_MS = 50;
export const FIRST_ELECTION_LOOKS = 100;
/** Connected peers that are enough, as in etcd. */
const ENOUGH_PEERS = 2;
/** Ticks of the timeout that remain at least: time for a leader's first message. */
const REMAINING_TICKS = 2;

export interface FirstElectionParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly transport: Pick<Transport, "peers">;
  readonly raft: Pick<Raft, "advanceElection">;
  readonly turns: Pick<LoopTurns, "wake">;
}

export class FirstElection {
  readonly #parts: FirstElectionParts;
  readonly #ticks: number;
  #timer: Timer | undefined;
  #looks = 0;

  /** @param electionTicks the election timeout, in ticks */
  constructor(electionTicks: number, parts: FirstElectionParts) {
    this.#parts = parts;
    this.#ticks = electionTicks - REMAINING_TICKS;
  }

  /** Begins to count connections. */
  start(): void {
    this.#timer = this.#parts.clock.every(FIRST_ELECTION_LOOK_MS, () => this.#look());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const { logger, transport, raft, turns } = this.#parts;
    const peers = transport.peers().filter((peer) => peer.activeSinceMs !== undefined).length;
    if (peers >= ENOUGH_PEERS) {
      logger.info("initialized peer connections; fast-forwarding election ticks", {
        "forward-ticks": this.#ticks,
        "active-remote-members": peers,
      });
      raft.advanceElection(this.#ticks);
      turns.wake();
    } else if (++this.#looks < FIRST_ELECTION_LOOKS) return;
    this.stop();
  }
}
