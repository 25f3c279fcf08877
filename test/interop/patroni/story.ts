/**
 * Patroni's story: two nodes of PostgreSQL whose leader is kept in a cluster of ours, rows that are
 * inserted all the time, and machines that die.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { TestCluster } from "../../support/cluster.ts";
import { metric } from "../../support/http.ts";
import type { TestMember } from "../../support/member.ts";
import { shell } from "../../support/operator-shell.ts";
import { freePorts } from "../../support/ports.ts";
import { until } from "../../support/until.ts";
import { HealthChecks } from "./health-checks.ts";
import { postgresPrograms } from "./installed.ts";
import { PatroniNode } from "./node.ts";
import { RowWriter, rowsOf } from "./row-writer.ts";

/** A line that Patroni logs in each round, or while it waits. */
const ROUND =
  /: no action\. |: Lock owner: |imeline=| in progress$|heartbeat connection|_size = |Loop time|pg_controldata:/;
/** The time in a line of `logLines`: node names are between date and time. */
const timeOf = (line: string): string => line.replace(/ pg\d /, " ");

const page = readFileSync(join(import.meta.dirname, "../../../docs/guide/patroni.md"), "utf8");

/** The page's commands and its configuration of a node. */
function blockOf(kind: "sh run" | "yaml"): string {
  const found = new RegExp(`^\`\`\`${kind}\n(.*?)^\`\`\`$`, "ms").exec(page);
  assert.ok(found !== null, `docs/guide/patroni.md has a block ${kind}`);
  return found[1]!;
}

/** Patroni's configuration, as far as it is filled in here. */
interface Configuration {
  name: string;
  restapi: { listen: string; connect_address: string };
  etcd3?: Etcd3Section;
  etcd?: Etcd3Section;
  postgresql: {
    listen: string;
    connect_address: string;
    data_dir: string;
    bin_dir: string;
    authentication: { superuser: { username: string; password: string } };
  };
}
interface Etcd3Section {
  hosts: string[];
  username?: string;
  password?: string;
}

/** By which protocol Patroni speaks to the members: its section of the configuration. */
export type Protocol = "etcd3" | "etcd";

/** What the story needs, and where its lines go. */
export interface StoryOptions {
  readonly cluster: TestCluster;
  readonly protocol: Protocol;
  say(line: string): void;
}

/** Two nodes, the writer and the health checks. */
export class Story {
  readonly #cluster: TestCluster;
  readonly #say: (line: string) => void;
  readonly #dir: string;
  readonly #nodes: PatroniNode[] = [];
  readonly checks = new HealthChecks();
  #writer: RowWriter | undefined;
  readonly #startedMs = performance.now();

  private constructor({ cluster, say }: StoryOptions) {
    this.#cluster = cluster;
    this.#say = say;
    this.#dir = mkdtempSync(join(tmpdir(), "quorate-patroni-"));
    // PostgreSQL's user has to pass.
    chmodSync(this.#dir, 0o755);
  }

  /** The user of the page is made, for etcd3; nodes are configured. No node runs yet. */
  static async prepare(options: StoryOptions): Promise<Story> {
    const story = new Story(options);
    const { cluster, protocol } = options;
    if (protocol === "etcd3") {
      const { code, output } = await shell(story.#dir, `set -e\n${blockOf("sh run")}`, {
        ETCDCTL_ENDPOINTS: cluster.endpoints.join(","),
      });
      assert.equal(code, 0, output);
      story.say("user and role made, authentication enabled");
    }
    for (const name of ["pg1", "pg2"]) {
      const [postgresPort, restPort] = await freePorts(2);
      const dir = join(story.#dir, name);
      mkdirSync(dir);
      story.#nodes.push(
        new PatroniNode({
          name,
          dir,
          configuration: configurationOf(cluster, protocol, name, dir, postgresPort!, restPort!),
          postgresPort: postgresPort!,
          restPort: restPort!,
        }),
      );
    }
    return story;
  }

  say(line: string): void {
    const seconds = ((performance.now() - this.#startedMs) / 1000).toFixed(1);
    this.#say(`${seconds} s: ${line}`);
  }

  get writer(): RowWriter {
    assert.ok(this.#writer !== undefined);
    return this.#writer;
  }

  /** The first node initialises the cluster, the second joins it; rows are inserted from then. */
  async initialise(): Promise<void> {
    const [first, second] = this.#nodes as [PatroniNode, PatroniNode];
    first.start();
    await this.#until(`${first.name} is primary`, () => this.#answers(first, "/primary"));
    second.start();
    await this.#until(`${second.name} is a synchronous standby`, () =>
      this.#answers(second, "/synchronous"),
    );
    assert.match(first.log(), /initialized a new cluster/);
    this.#writer = new RowWriter(this.#connection(this.#nodes, "read-write"));
    await this.writer.more(50);
    await this.#expectHealth();
  }

  /** The primary dies, and the standby takes over; then the old one comes back as a standby. */
  async loseThePrimary(): Promise<void> {
    const [old, next] = await this.#roles();
    this.checks.expect(old);
    this.checks.expect(next, "/health");
    await old.kill();
    this.say(`${old.name}, the primary, is killed`);
    await this.#until(`${next.name} is primary`, () => this.#answers(next, "/primary"));
    await this.writer.more(50);
    assert.match(next.log(), /promoted self to leader by acquiring session lock/);
    await this.#rejoin(old, next);
  }

  /** Our cluster loses its leader: PostgreSQL's primary must not notice. */
  async loseOurLeader(): Promise<void> {
    const leader = await this.#ourLeader();
    const [primary] = await this.#roles();
    const failuresBefore = this.writer.failures.length;
    const at = primary.log().length;
    await leader.kill();
    this.say(`${leader.name}, the leader of our cluster, is killed`);
    await this.#ourLeader();
    const elected = primary.log().length;
    // Patroni has written its key several times since.
    const rounds = () =>
      primary
        .log()
        .slice(elected)
        .match(/the leader with the lock/g) ?? [];
    await this.#until(`${primary.name} has held its lock through 5 rounds`, async () => {
      return rounds().length >= 5;
    });
    await this.writer.more(50);
    assert.deepEqual(this.writer.failures.slice(failuresBefore), []);
    assert.doesNotMatch(primary.log().slice(at), /demot/i);
    leader.start();
    await leader.waitReady();
    this.say(`${leader.name} is back`);
  }

  /** Both at once: the primary's machine and the leader of our cluster. */
  async loseBoth(): Promise<void> {
    const leader = await this.#ourLeader();
    const [old, next] = await this.#roles();
    this.checks.expect(old);
    this.checks.expect(next, "/health");
    await Promise.all([old.kill(), leader.kill()]);
    this.say(`${old.name}, the primary, and ${leader.name}, our leader, are killed at once`);
    await this.#until(`${next.name} is primary`, () => this.#answers(next, "/primary"));
    await this.writer.more(50);
    await this.#rejoin(old, next);
    leader.start();
    await leader.waitReady();
    this.say(`${leader.name} is back`);
  }

  /** The primary is stopped in order: its key goes at once, and so does its role. */
  async stopThePrimary(): Promise<void> {
    const [old, next] = await this.#roles();
    this.checks.expect(old);
    this.checks.expect(next, "/health");
    await old.stop();
    this.say(`${old.name}, the primary, is stopped`);
    await this.#until(`${next.name} is primary`, () => this.#answers(next, "/primary"));
    await this.writer.more(50);
    await this.#rejoin(old, next);
  }

  /** All rows that were acknowledged are on both nodes, and no health check failed. */
  async verdict(): Promise<void> {
    await this.writer.stop();
    await this.checks.stop();
    const rows = this.writer.acknowledged;
    for (const node of await this.#roles()) {
      const present = rowsOf(this.#connection([node], "any"));
      const lost = rows.filter((row) => !present.has(row));
      assert.deepEqual(lost, [], `rows that were acknowledged and ${node.name} has not`);
    }
    assert.deepEqual(this.checks.failures, []);
    const gap = this.writer.longestGapMs.toFixed(0);
    this.say(
      `${rows.length} rows acknowledged, none lost; longest gap ${gap} ms; ${this.checks.count} health checks, none failed`,
    );
  }

  /** What Patroni logged on both nodes, in order, without its regular rounds. */
  logLines(): string[] {
    return this.#nodes
      .flatMap((node) =>
        node
          .log()
          .split("\n")
          .filter((line) => /^\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+: /.test(line) && !ROUND.test(line))
          .map((line) => line.replace(" ", ` ${node.name} `)),
      )
      .sort((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1));
  }

  /** The ends of both logs, for the report of a failure. */
  logTails(lines = 60): string {
    return this.#nodes
      .map((node) => `--- ${node.name}\n${node.log().split("\n").slice(-lines).join("\n")}`)
      .join("\n");
  }

  /** Kills what runs and removes the files. */
  async destroy(): Promise<void> {
    await this.checks.stop();
    await this.#writer?.stop();
    await Promise.all(this.#nodes.map((node) => node.kill()));
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #rejoin(old: PatroniNode, primary: PatroniNode): Promise<void> {
    old.start();
    await this.#until(`${old.name} is a synchronous standby`, () =>
      this.#answers(old, "/synchronous"),
    );
    await this.writer.more(50);
    assert.equal(await primary.asks("/primary"), 200);
    await this.#expectHealth();
  }

  /** From now on both are healthy, and the primary remains primary. */
  async #expectHealth(): Promise<void> {
    const [primary, standby] = await this.#roles();
    this.checks.expect(primary, "/health", "/primary", "/liveness");
    this.checks.expect(standby, "/health", "/replica", "/liveness");
  }

  /** The primary and the standby. */
  async #roles(): Promise<[primary: PatroniNode, standby: PatroniNode]> {
    const [first, second] = this.#nodes as [PatroniNode, PatroniNode];
    const isFirst = (await first.asks("/primary")) === 200;
    if (!isFirst) assert.equal(await second.asks("/primary"), 200, "one of them is primary");
    return isFirst ? [first, second] : [second, first];
  }

  /** The member that leads, as its metrics say: a call would need a user. */
  async #ourLeader(): Promise<TestMember> {
    let leader: TestMember | undefined;
    await until("a member leads", async () => {
      for (const member of this.#cluster.members.filter((one) => one.isRunning)) {
        const leads = await metric(this.#cluster, member, "etcd_server_is_leader").catch(() => 0);
        if (leads === 1) leader = member;
      }
      return leader !== undefined;
    });
    return leader!;
  }

  async #answers(node: PatroniNode, path: string): Promise<boolean> {
    assert.ok(node.isRunning, `${node.name} has ended:\n${node.log()}`);
    return (await node.asks(path)) === 200;
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    await until(what, holds, 100);
    this.say(what);
  }

  /** A connection string of libpq's. */
  #connection(nodes: readonly PatroniNode[], kind: "read-write" | "any"): string {
    const { username, password } = (parse(blockOf("yaml")) as Configuration).postgresql
      .authentication.superuser;
    const hosts = nodes.map(() => "127.0.0.1").join(",");
    const ports = nodes.map(({ options }) => options.postgresPort).join(",");
    return `host=${hosts} port=${ports} dbname=postgres user=${username} password='${password}' target_session_attrs=${kind}`;
  }
}

/** The page's configuration with the addresses of this run. */
function configurationOf(
  cluster: TestCluster,
  protocol: Protocol,
  name: string,
  dir: string,
  postgresPort: number,
  restPort: number,
): string {
  const filled = parse(blockOf("yaml")) as Configuration;
  const rest = `127.0.0.1:${restPort}`;
  const postgres = `127.0.0.1:${postgresPort}`;
  const hosts = cluster.members.map((member) => member.clientAddress);
  const { etcd3, ...others } = filled;
  return stringify({
    ...others,
    name,
    [protocol]: protocol === "etcd3" ? { ...etcd3, hosts } : { hosts, protocol: "http" },
    restapi: { listen: rest, connect_address: rest },
    postgresql: {
      ...filled.postgresql,
      listen: postgres,
      connect_address: postgres,
      data_dir: join(dir, "data"),
      bin_dir: postgresPrograms()!,
      parameters: { unix_socket_directories: dir },
    },
  });
}
