/**
 * Fake members, a fake terminal that records calls, and data for frames.
 */

import type { StopSignal, Terminal } from "@quorate/cli";
import { FakeIo } from "@quorate/cli/testing";
import { Member, ResponseHeader, StatusResponse } from "@quorate/proto";
import type { HttpResponse } from "../src/observe/http.ts";
import type { Prober } from "../src/observe/prober.ts";
import { Observer } from "../src/top/observer.ts";
import { type Picture, pictureOf } from "../src/top/picture.ts";

export const WALL_MS = Date.UTC(2026, 10, 22, 10);

/** A fake member. */
export interface FakeMember {
  id: number;
  name: string;
  puts: number;
  applied: number;
  status: Partial<StatusResponse>;
  /** Why it fails; "paused" for no response until released. */
  failure: string | undefined;
}

export function fakeMember(id: number, parts: Partial<FakeMember> = {}): FakeMember {
  return {
    id,
    name: `m${id}`,
    puts: 1000,
    applied: 30_500,
    status: {},
    failure: undefined,
    ...parts,
  };
}

export const endpointOf = (id: number): string => `http://10.0.0.${id}:2379`;

const FSYNC_BUCKET = "etcd_disk_wal_fsync_duration_seconds_bucket";

function metricsOf({ puts, id }: FakeMember): string {
  return `etcd_mvcc_put_total ${puts}
etcd_mvcc_delete_total 0
etcd_mvcc_txn_total 3
etcd_mvcc_range_total ${puts * id}
grpc_server_handled_total{grpc_method="Put"} ${puts * 2}
quorate_server_quota_used_ratio ${id === 2 ? 0.85 : 0.42}
etcd_debugging_mvcc_watcher_total 7
quorate_server_leases 12345
process_resident_memory_bytes 190000000
process_cpu_seconds_total ${puts / 1000}
nodejs_heap_size_used_bytes 60000000
nodejs_eventloop_lag_p99_seconds 0.0123
quorate_rpc_connections 3
process_open_fds 60
process_max_fds 100
${FSYNC_BUCKET}{le="0.002"} ${puts}
${FSYNC_BUCKET}{le="+Inf"} ${puts}
`;
}

/** A fake prober over fake members. Paused members respond when released. */
export class FakeProber implements Prober {
  readonly roster: FakeMember[];
  /** Endpoints of status requests, in order. */
  readonly asked: string[] = [];
  kept: ReadonlySet<string> = new Set();
  isClosed = false;
  /** Added to all member ids: another number is another cluster at the same endpoints. */
  generation = 0;
  #waiting: (() => void)[] = [];

  constructor(members: FakeMember[]) {
    this.roster = members;
  }

  /** Lets the deadlines of all requests to paused members pass. */
  timeOut(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const end of waiting) end();
  }

  async #at(endpoint: string): Promise<FakeMember> {
    const found = this.roster.find(({ id }) => endpointOf(id) === endpoint);
    if (found === undefined) throw new Error("connection refused");
    if (found.failure === "paused") {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      throw new Error("no response within 1 s");
    }
    if (found.failure !== undefined) throw new Error(found.failure);
    return found;
  }

  async status(endpoint: string): Promise<StatusResponse> {
    this.asked.push(endpoint);
    const { id, applied, status } = await this.#at(endpoint);
    return StatusResponse.create({
      header: ResponseHeader.create({
        memberId: BigInt(id + this.generation),
        clusterId: 9n,
        revision: 1204,
      }),
      version: "3.7.0",
      leader: 1n,
      raftTerm: 4,
      raftIndex: applied,
      raftAppliedIndex: applied,
      dbSize: 25_000_000,
      dbSizeInUse: 5_000_000,
      dbSizeQuota: 100_000_000,
      ...status,
    });
  }

  async members(endpoint: string): Promise<readonly Member[]> {
    await this.#at(endpoint);
    return this.roster.map(({ id, name }) =>
      Member.create({ ID: BigInt(id + this.generation), name, clientURLs: [endpointOf(id)] }),
    );
  }

  async metrics(endpoint: string): Promise<HttpResponse> {
    const found = await this.#at(endpoint);
    return { status: 200, body: metricsOf(found), dateMs: undefined, sentMs: 0, receivedMs: 0 };
  }

  keepOnly(wanted: ReadonlySet<string>): void {
    this.kept = wanted;
  }

  close(): void {
    this.isClosed = true;
  }
}

/**
 * The observer's state after `rounds` polls, one second apart, with rising write counts.
 */
export async function pictureAfter(
  prober: FakeProber,
  rounds: number,
  growth = (round: number) => 100 * (round % 8),
): Promise<Picture> {
  let nowMs = 0;
  const endpoints = prober.roster.map(({ id }) => endpointOf(id));
  const observer = new Observer(prober, { endpoints, nowMs: () => nowMs, onChange: () => {} });
  for (let round = 0; round < rounds; round++) {
    nowMs += 1000;
    for (const member of prober.roster) member.puts += growth(round);
    const asking = observer.round();
    // The paused ones run into their deadline.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    prober.timeOut();
    await asking;
    observer.tick(({ failure }) => failure === undefined);
  }
  return pictureOf(observer, { wallMs: WALL_MS, nowMs, intervalMs: 1000 });
}

/** A fake terminal that records calls. */
export class FakeTerminal implements Terminal {
  readonly happened: string[] = [];
  columns = 80;
  rows = 24;
  behind = false;
  isBehind(): boolean {
    return this.behind;
  }
  press: (key: string) => void = () => {};
  resize: () => void = () => {};
  size(): { columns: number; rows: number } {
    return { columns: this.columns, rows: this.rows };
  }
  enter(): () => void {
    this.happened.push("enter");
    return () => this.happened.push("leave");
  }
  onResize(changed: () => void): () => void {
    this.resize = changed;
    return () => this.happened.push("resize off");
  }
  onKey(typed: (key: string) => void): () => void {
    this.press = typed;
    return () => this.happened.push("keys off");
  }
}

/** The frames of a live view. */
export class LiveIo extends FakeIo {
  readonly terminal: FakeTerminal;
  stop = (_signal: StopSignal): void => {};
  readonly frames: string[] = [];
  #changed = (): void => {};

  constructor(terminal: FakeTerminal) {
    super();
    this.terminal = terminal;
  }

  override stdout(content: string | Uint8Array): void {
    super.stdout(content);
    this.frames.push(String(content));
    this.#changed();
  }

  /** Resolves with the next frame that fits `pattern`, or the last one if it does. */
  async drawn(pattern: RegExp): Promise<string> {
    for (;;) {
      const last = this.frames.at(-1) ?? "";
      if (pattern.test(last)) return last;
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  override onStop(stop?: (signal: StopSignal) => void): () => void {
    if (stop !== undefined) this.stop = stop;
    return () => this.terminal.happened.push("stop off");
  }
}
