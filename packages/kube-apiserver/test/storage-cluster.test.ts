/**
 * EtcdStore passes the contract of storages over a member: ours, and etcd where it is there.
 * @slow
 */
import { spawnSync } from "node:child_process";
import test, { after } from "node:test";
import type { Client } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { EtcdStore, jsonCodec, LeaseManager } from "@quorate/kube-storage";
import {
  POD,
  PODS_PREFIX,
  PrefixTransformer,
  podAttributes,
  type StorageUnderTest,
  storageContract,
  testClock,
} from "@quorate/kube-storage/testing";
import { fromUtf8 } from "@quorate/proto";
import { startCluster, type TestCluster } from "../../../test/support/cluster.ts";
import { type Executable, etcd, memberUnderTest } from "../../../test/support/executables.ts";
import { LibraryCluster } from "../node/cluster.ts";

/** A short election timeout allows a short time to live. */
const FLAGS = ["--heartbeat-interval=10", "--election-timeout=100"];

interface Running {
  readonly cluster: TestCluster;
  readonly client: Client;
}

function contractOver(executable: Executable): void {
  let running: Promise<Running> | undefined;
  let stores = 0;
  const start = async (): Promise<Running> => {
    const cluster = await startCluster({ executable, size: 1, flags: FLAGS });
    return { cluster, client: connect({ endpoints: cluster.endpoints }) };
  };
  after(async () => {
    const { cluster, client } = (await running) ?? {};
    client?.close();
    await cluster?.destroy();
  });

  const open = async (): Promise<StorageUnderTest> => {
    running ??= start();
    const { client } = await running;
    const transformer = new PrefixTransformer();
    const cluster = new LibraryCluster(client);
    const storage = new EtcdStore(
      { kind: POD, root: `/registry-${++stores}`, resourcePrefix: PODS_PREFIX },
      {
        client: cluster,
        codec: jsonCodec,
        transformer,
        attributesOf: podAttributes,
        leases: new LeaseManager(
          (ttl) => cluster.grantLease(ttl),
          () => testClock.monotonicMs(),
        ),
        clock: testClock,
      },
    );
    return {
      storage,
      transformer,
      compact: async (revision) => void (await client.compact(revision)),
      increaseRevision: async () => (await client.put("/elsewhere", fromUtf8("x"))).header.revision,
      advance: () => {},
      close: () => storage.close(),
    };
  };
  storageContract(`EtcdStore over ${executable.name}`, { open });
}

/** The oldest etcd that reports progress on request, as Kubernetes needs it. */
const OLDEST = [3, 5];

function versionOf({ command }: Executable): number[] {
  const text = spawnSync(command[0], ["--version"], { encoding: "utf8" }).stdout;
  return (/etcd Version: (\d+)\.(\d+)/.exec(text) ?? []).slice(1).map(Number);
}

function isRecent(executable: Executable): boolean {
  const [major = 0, minor = 0] = versionOf(executable);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

contractOver(memberUnderTest);
if (etcd !== undefined && isRecent(etcd)) contractOver(etcd);
else
  test("EtcdStore over etcd", { skip: `no etcd of version ${OLDEST.join(".")} or newer on PATH` });
