/** Faults by seed: what clients meet, that a seed repeats it, and that it is legal. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { ManualClock, type MemoryExchange } from "@quorate/host/testing";
import type { StoredObject, Watch, WatchEvent, WatchListener } from "@quorate/kube-storage";
import { until } from "../../../../test/support/until.ts";
import { type ChaosFault, MAX_IN_ROW } from "../../src/chaos/chaos.ts";
import { MAX_STALE_CHANGES } from "../../src/chaos/revisions.ts";
import { type ChaosSettings, chaosSettingsOf, NO_CHAOS } from "../../src/chaos/settings.ts";
import { type FateOf, SlowWatch } from "../../src/chaos/slow-watch.ts";
import { ApiWorld, CONFIG_MAPS, type Sent } from "../support/api-world.ts";

type Test = { after(task: () => Promise<void>): void };

const AGENT = { "user-agent": "manager/v1.0 (linux/amd64)" };
const ALWAYS: ChaosSettings = { ...NO_CHAOS, seed: 7, agent: "manager" };

interface Chaotic {
  readonly world: ApiWorld;
  readonly faults: ChaosFault[];
  /** A request of the client that meets faults. */
  send(target: string, sent?: Sent): Promise<MemoryExchange>;
}

async function chaotic(t: Test, settings: Partial<ChaosSettings>): Promise<Chaotic> {
  const faults: ChaosFault[] = [];
  const onFault = (fault: ChaosFault) => void faults.push(fault);
  const chaos = { ...ALWAYS, ...settings };
  const world = await ApiWorld.open(t, { chaos }, undefined, { onFault });
  const send = async (target: string, sent: Sent = {}): Promise<MemoryExchange> => {
    const exchange = world.start(target, { ...sent, headers: { ...AGENT, ...sent.headers } });
    await exchange.done;
    return exchange;
  };
  return { world, faults, send };
}

/** A config map that has had the values 0 to `changes`. Resolves with its revisions, in order. */
async function changed(world: ApiWorld, name: string, changes: number): Promise<string[]> {
  const made = await world.configMap(name, { value: "0" });
  const revisions = [made.metadata.resourceVersion];
  const headers = { "content-type": "application/merge-patch+json" };
  for (let value = 1; value <= changes; value++) {
    const sent = { method: "PATCH", headers, body: { data: { value: String(value) } } };
    const { metadata } = await world.ok(`${CONFIG_MAPS}/${name}`, sent);
    revisions.push(metadata.resourceVersion);
  }
  return revisions;
}

describe("settings of --chaos", () => {
  it("are read whole", () => {
    const text = "seed=7, stale-lists=0.3,watch-delay=0.5:2s,gone=.1,conflicts=1,cuts=0,faults=5";
    const more = "crash-after-writes=0.25,agent=a b,resources=pods+leases";
    assert.deepEqual(chaosSettingsOf(`${text},${more}`), {
      seed: 7,
      agent: "a b",
      resources: ["pods", "leases"],
      faults: 5,
      staleLists: 0.3,
      watchDelay: { rate: 0.5, maxMs: 2000 },
      gone: 0.1,
      conflicts: 1,
      cuts: 0,
      crashAfterWrites: 0.25,
    });
  });

  it("that are wrong lead to errors with the right ones", () => {
    const cases: [text: string, error: RegExp][] = [
      ["cuts=0.1", /seed is missing/],
      ["seed=7,cats=1", /"cats" is unknown; settings are name=value of seed, agent, .*cuts/],
      ["seed=7,cuts", /"cuts" has no value/],
      ["seed=7,cuts=0,cuts=1", /"cuts" is there twice/],
      ["seed=7,cuts=1.5", /cuts is "1.5"; it must be a part from 0 to 1/],
      ["seed=-1", /seed is "-1"; it must be a whole number/],
      ["seed=7,watch-delay=2h", /watch-delay is "2h"; it must be DURATION or RATE:DURATION/],
      ["seed=7,watch-delay=2:1s", /watch-delay is "2"; it must be a part/],
    ];
    for (const [text, error] of cases) assert.throws(() => chaosSettingsOf(text), error);
  });
});

describe("faults", () => {
  it("are the same for the same seed, whatever other clients do", async (t) => {
    const settings = { cuts: 0.3, conflicts: 0.3, crashAfterWrites: 0.3, gone: 0.3 };
    const run = async (seed: number, isCrowded: boolean): Promise<unknown> => {
      const { world, faults, send } = await chaotic(t, { ...settings, seed });
      for (let at = 0; at < 12; at++) {
        const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c${at}` } };
        if (isCrowded) await world.configMap(`other${at}`);
        await send(CONFIG_MAPS, { method: "POST", body });
        await send(`${CONFIG_MAPS}/c${at}`);
      }
      return faults.map(({ fault, request, n }) => `${n} ${request}: ${fault}`);
    };
    const first = await run(7, false);
    assert.deepEqual(await run(7, true), first);
    assert.notDeepEqual(await run(8, false), first);
  });

  it("meet the client and the resources that are named, and so many at most", async (t) => {
    const settings = { cuts: 1, faults: 2, resources: ["configmaps"] };
    const { world, faults, send } = await chaotic(t, settings);
    await world.ok(CONFIG_MAPS);
    assert.equal((await send("/api/v1/pods")).status, 200);
    const states = [];
    for (let at = 0; at < 4; at++) states.push((await send(CONFIG_MAPS)).state);
    assert.deepEqual(states, ["aborted", "aborted", "ended", "ended"]);
    assert.deepEqual(
      faults.map(({ client, request, n }) => [client, request, n]),
      [
        ["manager", "list configmaps", 1],
        ["manager", "list configmaps", 2],
      ],
    );
  });

  it("do not go on for ever", async (t) => {
    const { send } = await chaotic(t, { cuts: 1 });
    for (let at = 0; at < MAX_IN_ROW; at++)
      assert.equal((await send(CONFIG_MAPS)).state, "aborted");
    assert.equal((await send(CONFIG_MAPS)).status, 200);
  });
});

describe("a stale list", () => {
  it("is a state of the past where any will do, and the present one otherwise", async (t) => {
    const { world, faults, send } = await chaotic(t, { staleLists: 1 });
    await send(CONFIG_MAPS);
    const revisions = await changed(world, "a", 5);
    const latest = revisions.at(-1)!;
    const list = async (query: string) => JSON.parse((await send(CONFIG_MAPS + query)).text);
    const valueIn = ({ items }: { items: { data: { value: string } }[] }) => items[0]?.data.value;
    for (const query of ["", `?resourceVersion=${latest}`, `?resourceVersion=${latest}&limit=1`])
      assert.equal(valueIn(await list(query)), "5", query);
    assert.equal(faults.length, 0);
    const stale = await list("?resourceVersion=0");
    const { resourceVersion } = stale.metadata;
    assert.ok(Number(resourceVersion) < Number(latest), resourceVersion);
    // The list is the whole state at its revision, so that the watch from there leaves no gap.
    const at = revisions.findLastIndex((one) => Number(one) <= Number(resourceVersion));
    assert.equal(valueIn(stale), at < 0 ? undefined : String(at));
    assert.match(faults[0].why, new RegExp(`^the state at \\d+; the latest is ${latest}$`));
    const watch = world.start(`${CONFIG_MAPS}?watch=1&resourceVersion=${resourceVersion}`, {
      headers: AGENT,
    });
    const seen = () =>
      watch.text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line).object.metadata.resourceVersion);
    const expected = revisions.slice(at + 1);
    await until("all changes since came", () => seen().length >= expected.length);
    assert.deepEqual(seen(), expected);
    watch.leave();
  });

  it("goes back no further than the changes that are kept", async (t) => {
    const { world, faults, send } = await chaotic(t, { staleLists: 1 });
    await send(CONFIG_MAPS);
    const revisions = await changed(world, "b", MAX_STALE_CHANGES + 20);
    const isWhole = () => faults.at(-1)?.why.endsWith(` ${revisions.at(-1)}`);
    while (!isWhole()) {
      await send(`${CONFIG_MAPS}?resourceVersion=0`);
      // Events come in turns of their own.
      await endOfTurn();
    }
    for (let n = 0; n < 40; n++) await send(`${CONFIG_MAPS}?resourceVersion=0`);
    for (const { why } of faults) {
      const [, at, latest] = /^the state at (\d+); the latest is (\d+)$/.exec(why)!;
      const oldest = Number(revisions[revisions.indexOf(latest) - MAX_STALE_CHANGES] ?? 0);
      assert.ok(Number(at) >= oldest && Number(at) < Number(latest), why);
    }
  });

  it("makes clients list that would begin with a watch, as a server without WatchList", async (t) => {
    const { send } = await chaotic(t, { staleLists: 0.1 });
    const query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    const { status, text } = await send(CONFIG_MAPS + query);
    assert.equal(status, 422);
    assert.match(
      text,
      /sendInitialEvents is forbidden for watch unless the WatchList feature gate/,
    );
  });
});

describe("a watch", () => {
  it("is told that its revision is gone, but never the latest one", async (t) => {
    const { world, faults, send } = await chaotic(t, { gone: 1 });
    await send(CONFIG_MAPS);
    const [first, latest] = await changed(world, "c", 1);
    const { text, status } = await send(`${CONFIG_MAPS}?watch=1&resourceVersion=${first}`);
    assert.deepEqual([status, JSON.parse(text).reason], [410, "Expired"]);
    assert.equal(faults[0].fault, "gone");
    const query = `?watch=1&resourceVersion=${latest}&timeoutSeconds=1`;
    assert.equal((await send(CONFIG_MAPS + query)).status, 200);
  });

  it("is cut off before an event, and goes on from the last one", async (t) => {
    const { world, faults } = await chaotic(t, { cuts: 1 });
    const [first] = await changed(world, "d", 0);
    const watch = world.start(`${CONFIG_MAPS}?watch=1&resourceVersion=${first}`, {
      headers: AGENT,
    });
    let count = 0;
    while (watch.state !== "aborted") {
      await changed(world, `d${count++}`, 0);
      assert.ok(count < 100);
    }
    const last = watch.text.split("\n").at(-2);
    const from = last === undefined ? first : JSON.parse(last).object.metadata.resourceVersion;
    assert.match(
      faults[0].why,
      /^the connection ends before event \d+, of \/configmaps\/default\/d/,
    );
    const again = world.start(`${CONFIG_MAPS}?watch=1&resourceVersion=${from}`);
    await until("the event came", () => again.text.includes(`"d${count - 1}"`));
    again.leave();
  });
});

describe("a write", () => {
  it("conflicts where another write really came first", async (t) => {
    const { world, faults, send } = await chaotic(t, { conflicts: 1 });
    const made = await world.configMap("e", { value: "0" });
    const put = (object: object) =>
      send(`${CONFIG_MAPS}/e`, { method: "PUT", body: { ...made, ...object } });
    const refused = await put({ data: { value: "1" } });
    assert.equal(refused.status, 409);
    assert.match(refused.text, /the object has been modified; please apply your changes/);
    const { metadata, ...rest } = await world.ok(`${CONFIG_MAPS}/e`);
    assert.ok(Number(metadata.resourceVersion) > Number(made.metadata.resourceVersion));
    const { metadata: before, ...same } = made;
    assert.deepEqual(rest, same);
    assert.deepEqual({ ...metadata, resourceVersion: before.resourceVersion }, before);
    assert.equal(faults[0].fault, "conflict");
    // One that does not say what it has read cannot conflict.
    const blind = { ...made.metadata, resourceVersion: undefined };
    assert.equal((await put({ metadata: blind })).status, 200);
  });

  it("is done, and its answer lost", async (t) => {
    const { world, faults, send } = await chaotic(t, { crashAfterWrites: 1 });
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "f" } };
    const lost = await send(CONFIG_MAPS, { method: "POST", body });
    assert.deepEqual([lost.state, lost.status, lost.text], ["aborted", undefined, ""]);
    await world.ok(`${CONFIG_MAPS}/f`);
    // The answer to a write that was refused is not lost.
    assert.equal((await send(CONFIG_MAPS, { method: "POST", body })).status, 409);
    assert.deepEqual(
      faults.map(({ fault }) => fault),
      ["lost answer"],
    );
  });

  it("is not done where it is cut off", async (t) => {
    const { world, send } = await chaotic(t, { cuts: 1 });
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "g" } };
    assert.equal((await send(CONFIG_MAPS, { method: "POST", body })).state, "aborted");
    assert.equal((await world.request(`${CONFIG_MAPS}/g`)).status, 404);
  });
});

/** A watch that a test drives, with a listener that keeps what it gets. */
class Driven implements Watch {
  listener!: WatchListener;
  readonly got: string[] = [];
  isPaused = false;
  isStopped = false;
  readonly #waiting: WatchEvent[] = [];

  start(listener: WatchListener): void {
    this.listener = listener;
  }

  resume(): void {
    this.isPaused = false;
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      this.isPaused = !this.listener.event(event);
      if (this.isPaused) return;
    }
  }

  stop(): void {
    this.isStopped = true;
  }

  happens(name: string, type: WatchEvent["type"] = "ADDED"): void {
    this.#waiting.push({ type, object: { key: name } as StoredObject });
    if (!this.isPaused) this.resume();
  }

  /** Serves it through a SlowWatch; `wants` is what the client's listener returns. */
  slow(clock: ManualClock, fateOf: FateOf, wants = () => true): SlowWatch {
    const slow = new SlowWatch(this, fateOf, clock, () => this.got.push("cut"));
    slow.start({
      event: ({ object }) => {
        this.got.push(object.key);
        return wants();
      },
      ended: (error) => this.got.push(`end ${error?.code ?? ""}`),
    });
    return slow;
  }
}

describe("late events", () => {
  const second: FateOf = (n) => ({ delayMs: n === 2 ? 100 : 0 });

  it("hold all that is behind them, and keep the order", () => {
    const [clock, watch] = [new ManualClock(), new Driven()];
    watch.slow(clock, second);
    for (const name of ["a", "b", "c"]) watch.happens(name);
    watch.happens("mark", "BOOKMARK");
    clock.advance(99);
    assert.deepEqual(watch.got, ["a"]);
    clock.advance(1);
    assert.deepEqual(watch.got, ["a", "b", "c", "mark"]);
  });

  it("come before the end of their watch", () => {
    const [clock, watch] = [new ManualClock(), new Driven()];
    watch.slow(clock, second);
    for (const name of ["a", "b"]) watch.happens(name);
    watch.listener.ended(undefined);
    assert.deepEqual(watch.got, ["a"]);
    clock.advance(100);
    assert.deepEqual(watch.got, ["a", "b", "end "]);
  });

  it("wait for a client that does not read, and end with it", () => {
    const [clock, watch] = [new ManualClock(), new Driven()];
    let wants = false;
    const slow = watch.slow(clock, second, () => wants);
    for (const name of ["a", "b", "c"]) watch.happens(name);
    assert.deepEqual(watch.got, ["a"]);
    wants = true;
    slow.resume();
    assert.deepEqual(watch.got, ["a"]);
    // A client that reads while an event is held brings nothing forward.
    slow.resume();
    assert.deepEqual(watch.got, ["a"]);
    slow.stop();
    clock.advance(1000);
    assert.deepEqual([watch.got, watch.isStopped], [["a"], true]);
  });
});
