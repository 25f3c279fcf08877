/** A cluster in the shape of the containers of testcontainers, without Docker. */

import { defined } from "@quorate/proto";
import type { ConfigFile } from "@quorate/server";
import { type TestCluster, testCluster } from "./cluster.ts";
import type { TestMember } from "./test-member.ts";

const CLIENT_PORT = 2379;
const PEER_PORT = 2380;

/** What is to be started. */
export class QuorateContainer {
  #members = 1;
  #config: ConfigFile = {};

  /** Default: one member. */
  withMembers(count: number): this {
    this.#members = count;
    return this;
  }

  /** Options of the members, as in a config file. */
  withConfig(config: ConfigFile): this {
    this.#config = config;
    return this;
  }

  /** Starts it; resolves when all members are ready. */
  async start(): Promise<StartedQuorateContainer> {
    const members = this.#members;
    return new StartedQuorateContainer(await testCluster({ members, config: this.#config }));
  }
}

/** What was started. */
export class StartedQuorateContainer implements AsyncDisposable {
  readonly cluster: TestCluster;

  /** Made by QuorateContainer.start(). */
  constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  get #first(): TestMember {
    return defined(this.cluster.members[0], "the first member");
  }

  getHost(): string {
    return "127.0.0.1";
  }

  /** The port of this machine for 2379 (clients) or 2380 (members) of the first member. */
  getMappedPort(port: number): number {
    if (port !== CLIENT_PORT && port !== PEER_PORT)
      throw new RangeError(`there is no port ${port}: ${CLIENT_PORT} and ${PEER_PORT} are there`);
    const { endpoint, peerUrl } = this.#first;
    return Number(new URL(port === CLIENT_PORT ? endpoint : peerUrl).port);
  }

  getFirstMappedPort(): number {
    return this.getMappedPort(CLIENT_PORT);
  }

  getClientPort(): number {
    return this.getMappedPort(CLIENT_PORT);
  }

  getPeerPort(): number {
    return this.getMappedPort(PEER_PORT);
  }

  /** The client URL of the first member. */
  getClientEndpoint(): string {
    return this.#first.endpoint;
  }

  getPeerEndpoint(): string {
    return this.#first.peerUrl;
  }

  /** The client URLs of all members. */
  getClientEndpoints(): readonly string[] {
    return this.cluster.endpoints;
  }

  /** Ends all members in order, and starts them on the files that they have. */
  async restart(): Promise<void> {
    await Promise.all(this.cluster.members.map((member) => member.stop()));
    await this.cluster.start();
  }

  async stop(): Promise<void> {
    await this.cluster.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
