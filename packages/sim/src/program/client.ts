/** Clients of a program: those of packages/client, over the simulated network. */
import {
  clientOver,
  EngineStream,
  type Link,
  LinkError,
  type LinkStream,
} from "@quorate/client/node";
import { GrpcCode, LeaseRevokeRequest, LeaseService } from "@quorate/proto";
import { Process, type Scheduler } from "../base/scheduler.ts";
import type { LeaseCheck } from "../check/lease-lives.ts";
import type { ClientNetwork } from "../client-network.ts";
import { ENDED_BY_SERVER, type Reply } from "../exchanges.ts";
import type { Node } from "../node.ts";
import type { Story } from "../report/story.ts";
import type { SimulatedClient, SimulatedClock } from "./types.ts";

export interface ClientParts {
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly network: ClientNetwork;
  readonly nodes: readonly Node[];
  readonly leaseCheck: Pick<LeaseCheck, "askedToRevoke">;
}

export class ProgramClock implements SimulatedClock {
  readonly #scheduler: Scheduler;
  readonly #process: Process | undefined;

  constructor(scheduler: Scheduler, process: Process | undefined) {
    this.#scheduler = scheduler;
    this.#process = process;
  }

  now(): number {
    return this.#scheduler.nowMs;
  }

  sleep(ms: number): Promise<void> {
    return this.#scheduler.delay(ms, this.#process);
  }
}

/** Makes the client of this number. */
export function makeClient(
  number: number,
  parts: ClientParts,
): { readonly client: SimulatedClient; readonly process: Process } {
  const { scheduler, nodes } = parts;
  const name = `c${number}`;
  const process = new Process(name);
  const clock = new ProgramClock(scheduler, process);
  const links = nodes.map((node) => new ProgramLink(node, process, parts));
  const openLink = (endpoint: string): Link => {
    const node = nodes.find((one) => one.name === endpoint);
    if (node === undefined) throw new RangeError(`there is no member ${endpoint}`);
    return new ProgramLink(node, process, parts);
  };
  const client = clientOver(
    links,
    {
      openLink,
      first: number % nodes.length,
      clock: { nowMs: () => scheduler.nowMs, sleep: (ms) => clock.sleep(ms) },
      timer: {
        after(delayMs, task) {
          const timer = scheduler.after(delayMs, task, process);
          return () => timer.cancel();
        },
      },
    },
    {},
  );
  return { client: Object.assign(client, { name, clock }), process };
}

const ABORTED: Reply = { error: "the call was aborted", code: GrpcCode.Canceled };

/** From a client to a member. What comes back waits while the client is paused. */
class ProgramLink implements Link {
  /** The member's name. */
  readonly endpoint: string;
  readonly #node: Node;
  readonly #process: Process;
  readonly #parts: ClientParts;
  readonly #streams = new Set<EngineStream>();
  #isClosed = false;

  constructor(node: Node, process: Process, parts: ClientParts) {
    this.endpoint = node.name;
    this.#node = node;
    this.#process = process;
    this.#parts = parts;
  }

  async call(
    path: string,
    request: Uint8Array,
    { token }: { readonly token: string | undefined },
    _dialTimeoutMs: number,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    if (this.#isClosed) throw new LinkError(GrpcCode.Canceled, "the client is closed", false);
    const { network, scheduler, story, leaseCheck } = this.#parts;
    if (path === LeaseService.methods.LeaseRevoke.path)
      leaseCheck.askedToRevoke(String(LeaseRevokeRequest.decode(request).ID));
    const { name } = this.#process;
    story.record(name, () => `calls ${this.endpoint} ${path}`, request);
    const asking = network.exchange(this.#node, path, request, timeoutMs, name, { token });
    const aborted = Promise.withResolvers<Reply>();
    const stop = (): void => aborted.resolve(ABORTED);
    signal?.addEventListener("abort", stop);
    const reply = signal?.aborted ? ABORTED : await Promise.race([asking, aborted.promise]);
    signal?.removeEventListener("abort", stop);
    await scheduler.delay(0, this.#process);
    const { bytes, error, unsent, code = GrpcCode.Unavailable } = reply;
    story.record(name, () => `hears from ${this.endpoint} ${error ?? path}`, bytes);
    if (bytes === undefined) throw new LinkError(code, error ?? "", unsent !== true);
    return bytes;
  }

  async stream(
    path: string,
    {
      token,
      requireLeader = false,
    }: { readonly token: string | undefined; requireLeader?: boolean },
  ): Promise<LinkStream> {
    if (this.#isClosed) throw new LinkError(GrpcCode.Canceled, "the client is closed", false);
    const { network, scheduler } = this.#parts;
    const later = (run: () => void): void => void scheduler.after(0, run, this.#process);
    const ignore = (): void => {};
    const client = new EngineStream(ignore, () => this.#streams.delete(client));
    const stream = network.open(
      this.#node,
      path,
      {
        message: (bytes) => later(() => client.message(bytes)),
        ended: (reason) => {
          const code = reason === ENDED_BY_SERVER ? GrpcCode.OK : GrpcCode.Unavailable;
          later(() => client.ended({ code, message: reason }));
        },
      },
      { needsLeader: requireLeader },
      { token },
    );
    client.opened({
      send: (bytes) => {
        stream.send(bytes);
        return true;
      },
      finish: ignore,
      cancel: () => stream.close(),
      pause: ignore,
      resume: ignore,
    });
    this.#streams.add(client);
    return client;
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of [...this.#streams]) stream.close();
  }
}
