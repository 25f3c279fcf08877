/**
 * Members ask each other, as over HTTP at their peer URLs, for what no message of Raft contains.
 */

import type { Member } from "@quorate/member";
import { fromUtf8 } from "@quorate/proto";
import { httpRouter, peerEndpoints, versionOf } from "@quorate/server";
import type { Process, Scheduler } from "./base/scheduler.ts";
import type { Links } from "./links.ts";

/** What answers at a peer URL. */
export interface PeerPort {
  readonly name: string;
  readonly process: Process;
  /** @param body undefined for a request that only gets */
  answer(path: string, body: Uint8Array | undefined): Promise<PeerAnswer>;
}

/** What is asked there; without a body it only gets. */
export interface PeerRequest {
  readonly url: string;
  readonly path: string;
  readonly body: Uint8Array | undefined;
  readonly timeoutMs: number;
}

/** What comes back. */
export interface PeerAnswer {
  readonly status: number;
  readonly body: Uint8Array;
  readonly clusterId?: string | undefined;
}

/** Who answers where, and the way there and back. */
export class PeerPorts {
  readonly #links: Links;
  readonly #scheduler: Scheduler;
  readonly #ports = new Map<string, PeerPort>();

  constructor(links: Links, scheduler: Scheduler) {
    this.#links = links;
    this.#scheduler = scheduler;
  }

  /** From now on the requests to a peer URL are answered by this process. */
  listen(url: string, port: PeerPort): void {
    this.#ports.set(url, port);
  }

  /**
   * A member's request to another one's peer port, as HTTP would bring it. Rejects where no answer
   * comes in time.
   */
  call(name: string, process: Process, request: PeerRequest): Promise<PeerAnswer> {
    const { url, path, body, timeoutMs } = request;
    const scheduler = this.#scheduler;
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => reject(new Error(`${url}: ${reason}`));
      scheduler.after(timeoutMs, () => fail("no answer in time"), process);
      const target = this.#ports.get(url);
      // A firewall says nothing.
      if (target !== undefined && !this.#links.canDial(target.name)) return;
      if (target === undefined || !target.process.alive) {
        scheduler.after(
          this.#links.latencyMs(this.#links.link(name, "no member")),
          () => fail("connection refused"),
          process,
        );
        return;
      }
      const there = this.#links.link(name, target.name);
      const back = this.#links.link(target.name, name);
      this.#links.carry(there, () => {
        if (!target.process.alive) return;
        const ask = () => {
          target.answer(path, body).then(
            (answer) => {
              if (target.process.alive)
                this.#links.carry(back, () => scheduler.after(0, () => resolve(answer), process));
            },
            () => {},
          );
        };
        scheduler.after(0, ask, target.process);
      });
    });
  }
}

const NOT_FOUND: PeerAnswer = { status: 404, body: fromUtf8("404 page not found\n") };

/** What a member answers there. @param isEtcd whether it is a member of etcd's */
export function answersOf(member: Member, isEtcd: boolean): PeerPort["answer"] {
  const route = httpRouter(peerEndpoints(member, versionOf(member)));
  return async (path, asked) => {
    if (isEtcd && path.startsWith("/quorate/")) return NOT_FOUND;
    const sent = {
      method: asked === undefined ? "GET" : "POST",
      path,
      query: "",
      headers: new Map(),
      body: asked ?? new Uint8Array(0),
    };
    const { status, body, headers } = await route({
      ...sent,
      peerAddress: "",
      peerCommonName: undefined,
    });
    return {
      status,
      body: typeof body === "string" ? fromUtf8(body) : body,
      clusterId: headers?.["x-etcd-cluster-id"],
    };
  };
}
