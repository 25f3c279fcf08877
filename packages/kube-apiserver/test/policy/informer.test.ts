/** Informers: what they report over lost watches, and how they come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  expired,
  internalError,
  type KubeObject,
  type RestListOptions,
  type StoredObject,
  type Watch,
  type WatchListener,
} from "@quorate/kube-storage";
import { Informer, MAX_INFORMER_PAUSE_MS } from "../../src/informers/informer.ts";

function stored(name: string, revision: number, uid = name): StoredObject {
  const object: KubeObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, uid } };
  return {
    key: `/configmaps/${name}`,
    resourceVersion: revision,
    object: () => object,
    json: () => new Uint8Array(),
  };
}

/** A resource whose lists and watches the test controls. */
class Source {
  items: StoredObject[] = [];
  revision = 1;
  fails = 0;
  lists = 0;
  readonly watchedFrom: string[] = [];
  listener: WatchListener | undefined;

  async list() {
    this.lists++;
    if (this.fails > 0) {
      this.fails--;
      throw internalError("the store is away");
    }
    const { items, revision } = this;
    return { items, resourceVersion: String(revision), continueToken: "", remainingItemCount: 0 };
  }

  async watch(_ctx: unknown, options: RestListOptions): Promise<Watch> {
    this.watchedFrom.push(options.resourceVersion);
    return {
      start: (listener) => {
        this.listener = listener;
      },
      resume() {},
      stop: () => {
        this.listener = undefined;
      },
    };
  }
}

function start(source: Source) {
  const clock = new ManualClock();
  const events: string[] = [];
  const name = ({ metadata }: KubeObject) => metadata.name;
  const informer = new Informer(
    { storage: source },
    {
      added: (object) => events.push(`+${name(object)}`),
      updated: (object) => events.push(`~${name(object)}`),
      deleted: (object) => events.push(`-${name(object)}`),
      synced: () => events.push("synced"),
    },
    { clock, random: new SeededRandom(1n), logger: silentLogger },
  );
  informer.start();
  return { clock, events, informer };
}

test("events follow the list; a lost watch goes on from the last revision", async () => {
  const source = new Source();
  source.items = [stored("a", 1)];
  const { clock, events, informer } = start(source);
  await clock.settle();
  source.listener!.event({ type: "ADDED", object: stored("b", 2) });
  source.listener!.event({ type: "MODIFIED", object: stored("a", 3) });
  source.listener!.event({ type: "BOOKMARK", object: stored("", 9) });
  source.listener!.ended(undefined);
  await clock.advanceAsync(1000);
  assert.deepEqual(source.watchedFrom, ["1", "9"]);
  source.listener!.event({ type: "DELETED", object: stored("b", 10) });
  assert.deepEqual(events, ["+a", "synced", "+b", "~a", "-b"]);
  assert.deepEqual(
    [...informer.objects()].map(({ metadata }) => metadata.name),
    ["a"],
  );
  informer.stop();
  assert.equal(source.listener, undefined);
});

test("after a compaction the difference to the new list is reported", async () => {
  const source = new Source();
  source.items = [stored("a", 1), stored("b", 1), stored("c", 1)];
  const { clock, events, informer } = start(source);
  await clock.settle();
  events.length = 0;
  source.items = [stored("a", 1), stored("b", 5), stored("c", 6, "another"), stored("d", 7)];
  source.revision = 7;
  source.listener!.ended(expired("compacted"));
  await clock.advanceAsync(1000);
  assert.deepEqual(events, ["~b", "-c", "+c", "+d"]);
  assert.equal(source.watchedFrom.at(-1), "7");
  informer.stop();
});

test("a store that is away is retried, with pauses that grow to their bound", async () => {
  const source = new Source();
  source.fails = 1000;
  const { clock, informer } = start(source);
  await clock.advanceAsync(2000);
  const early = source.lists;
  assert.ok(early >= 4, `${early}`);
  await clock.advanceAsync(100_000);
  const perPause = (source.lists - early) / (100_000 / MAX_INFORMER_PAUSE_MS);
  assert.ok(perPause <= 1.2, `${perPause}`);
  let isSynced = false;
  void informer.synced.then(() => {
    isSynced = true;
  });
  source.fails = 0;
  await clock.advanceAsync(3 * MAX_INFORMER_PAUSE_MS);
  assert.equal(isSynced, true);
  informer.stop();
});
