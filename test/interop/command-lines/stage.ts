/**
 * A cluster that scenarios run on: made alike before each of them, and the names of what it has of
 * its own.
 */
import {
  AlarmType,
  ClusterService,
  KVService,
  LeaseService,
  MaintenanceService,
} from "@quorate/proto";
import { TestClient } from "../../support/client.ts";
import { startCluster, type TestCluster } from "../../support/cluster.ts";
import type { Executable } from "../../support/executables.ts";
import { until } from "../../support/until.ts";
import type { Names } from "./normalise.ts";

const EVERYTHING = { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) };
const PAD = { key: Uint8Array.of(112) };
/** Writes under way at a time. */
const PAD_BATCH = 50;

interface StageMember {
  readonly id: bigint;
  readonly name: string;
  readonly clientUrl: string;
  readonly peerUrl: string;
  readonly client: TestClient;
}

export class Stage {
  readonly #cluster: TestCluster;
  /** In the order of their ids. */
  readonly #members: readonly StageMember[];
  readonly #clusterId: bigint;

  private constructor(cluster: TestCluster, members: readonly StageMember[], clusterId: bigint) {
    this.#cluster = cluster;
    this.#members = members;
    this.#clusterId = clusterId;
  }

  /** A running cluster of so many members. The caller destroys it. */
  static async start(executable: Executable, size: number): Promise<Stage> {
    const cluster = await startCluster({ executable, size });
    const clients = new Map(
      cluster.members.map((one) => [one.name, new TestClient(one.clientAddress)]),
    );
    const list = await [...clients.values()][0].call(ClusterService.methods.MemberList, {});
    const members = list.members.map((one) => ({
      id: one.ID,
      name: one.name,
      clientUrl: one.clientURLs[0],
      peerUrl: one.peerURLs[0],
      client: clients.get(one.name)!,
    }));
    members.sort((a, b) => (a.id < b.id ? -1 : 1));
    return new Stage(cluster, members, list.header!.clusterId);
  }

  /**
   * Without keys and leases, at a revision (or at its first), led by its first member, with an
   * alarm or none.
   */
  async prepare(revision: number | undefined, alarm: string | undefined): Promise<number> {
    const { client } = this.#members[0];
    await this.#lead();
    await client.call(MaintenanceService.methods.Alarm, { action: 2, alarm: AlarmType.NOSPACE });
    const { members } = await client.call(ClusterService.methods.MemberList, {});
    for (const { ID } of members) {
      if (!this.#members.some(({ id }) => id === ID))
        await client.call(ClusterService.methods.MemberRemove, { ID });
    }
    for (const { ID } of (await client.call(LeaseService.methods.LeaseLeases, {})).leases) {
      await client.call(LeaseService.methods.LeaseRevoke, { ID });
    }
    let now = (await client.call(KVService.methods.Range, { key: Uint8Array.of(1) })).header!
      .revision;
    if (revision !== undefined) {
      if (now >= revision)
        throw new Error(
          `a scenario begins at revision ${revision}, but ${now} is reached: leave more revisions between them`,
        );
      while (now < revision - 1) {
        const batch = Math.min(PAD_BATCH, revision - 1 - now);
        await Promise.all(
          Array.from({ length: batch }, () => client.call(KVService.methods.Put, PAD)),
        );
        now += batch;
      }
      await client.call(KVService.methods.DeleteRange, EVERYTHING);
      now = (await client.call(KVService.methods.Range, { key: Uint8Array.of(1) })).header!
        .revision;
      if (now !== revision)
        throw new Error(`the store is at revision ${now} in place of ${revision}`);
    }
    if (alarm !== undefined) {
      const type = AlarmType[alarm as "NOSPACE"];
      await client.call(MaintenanceService.methods.Alarm, {
        action: 1,
        alarm: type,
        memberID: this.#members[0].id,
      });
    }
    // What the first member knows, the others apply a little later.
    for (const one of this.#members)
      await one.client.call(KVService.methods.Range, { key: Uint8Array.of(1) });
    return now;
  }

  async #lead(): Promise<void> {
    const [first] = this.#members;
    await until("the first member leads", async () => {
      const { leader } = await first.client.call(MaintenanceService.methods.Status, {});
      if (leader === first.id) return true;
      const leading = this.#members.find(({ id }) => id === leader);
      await leading?.client
        .call(MaintenanceService.methods.MoveLeader, { targetID: first.id })
        .catch(() => {});
      return false;
    });
  }

  /** Values of placeholders. */
  values(): [string, string][] {
    const all = this.#members.map(({ clientUrl }) => clientUrl).join(",");
    return [
      ["endpoint", all],
      ...this.#members.flatMap((one, i): [string, string][] => [
        [`endpoint${i}`, one.clientUrl],
        [`peer${i}`, one.peerUrl],
        [`member${i}`, one.id.toString(16)],
        [`name${i}`, one.name],
      ]),
    ];
  }

  /** What is its own, in output. */
  names(): Names {
    return [
      ...idNames(this.#clusterId, "{cluster}"),
      ...this.#members.flatMap((one, i): (readonly [string, string])[] => [
        [one.name, `{name${i}}`],
        [one.clientUrl, `{endpoint${i}}`],
        [new URL(one.clientUrl).host, `{address${i}}`],
        [one.peerUrl, `{peer${i}}`],
        [new URL(one.peerUrl).host, `{peeraddress${i}}`],
        ...idNames(one.id, `{member${i}}`),
      ]),
    ];
  }

  /** The member that does not belong to it from the start, if there is one. */
  async added(): Promise<bigint | undefined> {
    const { members } = await this.#members[0].client.call(ClusterService.methods.MemberList, {});
    return members.find(({ ID }) => !this.#members.some(({ id }) => id === ID))?.ID;
  }

  async destroy(): Promise<void> {
    for (const { client } of this.#members) client.close();
    await this.#cluster.destroy();
  }
}

/** An id in the forms that are printed. */
export function idNames(id: bigint, name: string): (readonly [string, string])[] {
  return [
    [id.toString(16), name],
    [id.toString(16).padStart(16, "0"), name],
    [id.toString(), name],
  ];
}
