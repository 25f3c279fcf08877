/** The servers on which the client's tests run: ours, and etcd's oldest and newest supported. */
import { basename } from "node:path";
import { after, before, suite } from "node:test";
import type { Client, ClientOptions } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import {
  type Executable,
  etcd,
  etcdNewest,
  memberUnderTest,
  skipWithoutEtcd,
  skipWithoutEtcdNewest,
} from "../support/executables.ts";

interface Server {
  readonly name: string;
  readonly executable: Executable | undefined;
  readonly skip: string | false;
}

const servers: readonly Server[] = [
  { name: "quorate", executable: memberUnderTest, skip: false },
  { name: "etcd on PATH", executable: etcd, skip: skipWithoutEtcd },
  { name: "the newest etcd", executable: etcdNewest, skip: skipWithoutEtcdNewest },
];

/** One member that runs while the tests of a suite do. */
export interface RunningServer {
  readonly name: string;
  readonly cluster: TestCluster;
  /** A client of it, which the suite closes. */
  connect(options?: Partial<ClientOptions>): Client;
}

/** Declares the same tests for each server. @param file the test file, for the suites' names */
export function onEachServer(file: string, declare: (server: RunningServer) => void): void {
  for (const { name, executable, skip } of servers) {
    suite(`${basename(file, ".test.ts")}: ${name}`, { skip }, () => {
      let running: TestCluster | undefined;
      const clients: Client[] = [];
      before(async () => {
        running = await startCluster({ executable: executable!, size: 1 });
      });
      after(async () => {
        for (const client of clients) client.close();
        await running?.destroy();
      });
      declare({
        name,
        get cluster() {
          return running!;
        },
        connect(options = {}) {
          const client = connect({ endpoints: running!.endpoints, ...options });
          clients.push(client);
          return client;
        },
      });
    });
  }
}
