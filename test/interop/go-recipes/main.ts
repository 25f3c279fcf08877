/**
 * The command `./dev clients go-recipes`: the client's locks, barriers and queues beside those of
 * etcd's Go packages (concurrency, experimental/recipes), on one member: each waits for the other,
 * and takes what the other gave. Needs Go and its module proxy; the first build takes a minute.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Barrier, connect, lockNamed, readLock, workQueue, writeLock } from "@quorate/client";
import { readArguments } from "../../../scripts/dev/command-line.ts";
import { startCluster } from "../../support/cluster.ts";

readArguments("./dev clients go-recipes: locks and queues beside those of Go's packages", {});
const directory = mkdtempSync(join(tmpdir(), "go-recipes-"));
const program = join(directory, "go-recipes");
const env = { ...process.env, GOFLAGS: "-p=1" };
execFileSync("go", ["build", "-o", program, "."], { cwd: import.meta.dirname, env });
const cluster = await startCluster({ size: 1 });
try {
  await using client = connect({ endpoints: cluster.endpoints });
  await using session = await client.session();
  const child = spawn(program, [cluster.members[0]!.clientAddress], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();

  const tell = (command: string): void => void child.stdin.write(`${command}\n`);
  const hears = async (line: string): Promise<void> => {
    assert.equal((await lines.next()).value, line);
    console.log(`Go: ${line}`);
  };
  const go = async (command: string): Promise<void> => {
    tell(command);
    await hears(`done ${command.split(" ")[0]}`);
  };
  /** Resolves when as many keys are below the prefix: the other one stands in the queue. */
  const keysBelow = async (prefix: string, count: number): Promise<void> => {
    while ((await client.get(prefix, { prefix: true, countOnly: true })).count !== count);
  };
  const waits = async (what: Promise<unknown>): Promise<void> => {
    const state = await Promise.race([
      what.then(() => "went on"),
      client.get("any").then(() => ""),
    ]);
    assert.equal(state, "");
  };

  // Whoever came first has it; the other one waits.
  await go("lock");
  const mutex = lockNamed(client, session, "interop-mutex");
  await keysBelow("interop-mutex/", 2);
  await waits(mutex);
  await go("unlock");
  const held = await mutex;
  tell("lock &");
  await keysBelow("interop-mutex/", 2);
  await held.release();
  await hears("done lock");
  await go("unlock");

  await go("rlock");
  const reading = await readLock(client, session, "interop-rw");
  await reading.release();
  const writing = writeLock(client, session, "interop-rw");
  await keysBelow("interop-rw/", 2);
  await waits(writing);
  await go("runlock");
  const written = await writing;
  tell("rlock &");
  await keysBelow("interop-rw/", 2);
  await written.release();
  await hears("done rlock");
  await go("runlock");
  const first = await readLock(client, session, "interop-rw");
  tell("wlock &");
  await keysBelow("interop-rw/", 2);
  await first.release();
  await hears("done wlock");
  const second = readLock(client, session, "interop-rw");
  await keysBelow("interop-rw/", 2);
  await waits(second);
  await go("wunlock");
  await (await second).release();

  const barrier = new Barrier(client, "interop-barrier");
  await go("hold");
  const passing = barrier.wait();
  await waits(passing);
  await go("release");
  await passing;
  assert.equal(await barrier.hold(), true);
  tell("wait &");
  await barrier.release();
  await hears("done wait");

  const queue = workQueue(client, "interop-queue");
  await go("enqueue one");
  await queue.put("two");
  await go("enqueue three");
  assert.equal(await queue.take(), "one");
  tell("dequeue");
  await hears("done dequeue two");
  assert.equal(await queue.take(), "three");
  const taking = queue.take();
  await go("enqueue four");
  assert.equal(await taking, "four");

  child.stdin.end();
  assert.deepEqual(await closed, [0, null]);
} finally {
  await cluster.destroy();
  rmSync(directory, { recursive: true });
}
