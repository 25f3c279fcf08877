/** watch (apiserver: pkg/storage/testing/watcher_tests.go). */
import assert from "node:assert/strict";
import type { KubeObject } from "../../src/meta/object.ts";
import type { SelectionPredicate } from "../../src/meta/selectors.ts";
import { INITIAL_EVENTS_END } from "../../src/storage/bookmark.ts";
import { keyOfPod, listOptions, pod, predicate, where } from "../example-pods.ts";
import type { WatchRecorder } from "../watch-recorder.ts";
import {
  type Case,
  change,
  create,
  record,
  type StorageContractOptions,
  type StorageUnderTest,
} from "./under-test.ts";

const FOO: KubeObject = pod("ns", "foo");
const KEY: string = keyOfPod(FOO);

export function watchCases(add: Case, options: StorageContractOptions): void {
  selectorCases(add);
  revisionCases(add, options);
  semanticsCases(add);
  progressCases(add);
  endCases(add, options);
}

/** Writes an object as it is, whether it was there or not; undefined deletes. */
async function write(it: StorageUnderTest, object: KubeObject | undefined): Promise<void> {
  if (object === undefined) await it.storage.delete(KEY);
  else
    await it.storage.guaranteedUpdate(keyOfPod(object), () => ({ object }), {
      ignoreNotFound: true,
    });
}

const assigned: KubeObject = pod("ns", "foo", {}, "bar");
const labelled: KubeObject = pod("ns", "foo", { labels: { select: "true" } });
const labelledAssigned: KubeObject = pod("ns", "foo", { labels: { select: "true" } }, "bar");

interface Story {
  readonly name: string;
  readonly predicate?: Partial<SelectionPredicate>;
  /** What is written, and the event that it makes: "" for none. */
  readonly steps: readonly (readonly [KubeObject | undefined, string])[];
}

const stories: readonly Story[] = [
  {
    name: "created, changed, deleted",
    steps: [
      [FOO, "ADDED"],
      [assigned, "MODIFIED"],
      [undefined, "DELETED"],
    ],
  },
  {
    name: "changed into a selector",
    predicate: { field: where("spec.nodeName", "=", "bar") },
    steps: [
      [FOO, ""],
      [assigned, "ADDED"],
    ],
  },
  {
    name: "changed out of a selector",
    predicate: { field: where("spec.nodeName", "!=", "bar") },
    steps: [
      [FOO, "ADDED"],
      [assigned, "DELETED"],
      [labelledAssigned, ""],
      [undefined, ""],
    ],
  },
  {
    name: "in and out of a selector",
    predicate: { label: where("select", "=", "true") },
    steps: [
      [labelled, "ADDED"],
      [FOO, "DELETED"],
      [labelled, "ADDED"],
      [labelledAssigned, "MODIFIED"],
      [undefined, "DELETED"],
    ],
  },
];

function selectorCases(add: Case): void {
  for (const story of stories)
    for (const recursive of [false, true])
      add(`watch of ${recursive ? "a prefix" : "a key"}: ${story.name}`, async (it) => {
        const watched = predicate(story.predicate);
        const { resourceVersion } = await it.storage.getList(
          "/pods/ns",
          listOptions({ predicate: watched }),
        );
        const watch = await record(it, recursive ? "/pods/ns" : KEY, {
          resourceVersion: String(resourceVersion),
          predicate: watched,
          recursive,
        });
        await write(it, pod("ns-other", "foo"));
        for (const [object, type] of story.steps) {
          const before = await it.storage.get(KEY, { ignoreNotFound: true });
          await write(it, object);
          if (type === "") continue;
          const event = await watch.next();
          assert.equal(event.type, type);
          const shown = event.object.object();
          const revision = await it.storage.currentResourceVersion();
          assert.equal(shown.metadata.resourceVersion, String(revision));
          assert.equal(event.object.resourceVersion, revision);
          const expected = type === "DELETED" ? before!.object() : object!;
          assert.deepEqual(
            { ...shown, metadata: { ...shown.metadata, resourceVersion: "" } },
            { ...expected, metadata: { ...expected.metadata, resourceVersion: "" } },
          );
        }
        await change(it, "/pods/ns-other/foo", { labels: { select: "true" } });
        watch.stop();
        assert.deepEqual(watch.waiting, []);
      });
}

function revisionCases(add: Case, { isCache = false }: StorageContractOptions): void {
  add("a watch from 0 begins with the present object", async (it) => {
    await create(it, FOO);
    const watch = await record(it, KEY, { resourceVersion: "0", recursive: false });
    assert.equal(await watch.nextText(), "ADDED foo");
    const changed = await change(it, KEY, { annotations: { a: "1" } });
    const event = await watch.next();
    assert.equal(event.type, "MODIFIED");
    assert.deepEqual(event.object.object(), changed.object());
    watch.stop();
    const again = await record(it, KEY, { resourceVersion: "0", recursive: false });
    assert.deepEqual((await again.next()).object.object(), changed.object());
    again.stop();
  });

  add("a watch from a revision has the changes after it", async (it) => {
    const first = await create(it, FOO);
    await change(it, KEY, { labels: { n: "2" } });
    await create(it, pod("ns", "bar"));
    const watch = await record(it, "/pods/", { resourceVersion: String(first.resourceVersion) });
    assert.equal(await watch.nextText(), "MODIFIED foo");
    assert.equal(await watch.nextText(), "ADDED bar");
    await it.storage.delete(KEY);
    assert.equal(await watch.nextText(), "DELETED foo");
    watch.stop();
  });

  add("a revision that is none is refused", async (it) => {
    await assert.rejects(record(it, "/pods/", { resourceVersion: "abc" }), /abc/);
  });

  // What a cache's window holds is not gone with the store's history.
  if (isCache) return;
  add("a watch from a compacted revision ends with 410", async (it) => {
    const first = await create(it, FOO);
    await change(it, KEY, { labels: { n: "2" } });
    const last = await change(it, KEY, { labels: { n: "3" } });
    await it.compact(last.resourceVersion);
    const watch = await record(it, KEY, {
      resourceVersion: String(first.resourceVersion),
      recursive: false,
    });
    const error = await watch.end();
    assert.equal(error?.httpStatus, 410);
    assert.equal(error?.message, "The resourceVersion for the provided watch is too old.");
    const zero = await record(it, KEY, { resourceVersion: "0", recursive: false });
    assert.deepEqual((await zero.next()).object.object(), last.object());
    zero.stop();
  });
}

/** Takes the initial events; a bookmark ends them where it is expected. */
async function initialEvents(
  watch: WatchRecorder,
  names: readonly string[],
  hasBookmark: boolean,
): Promise<number> {
  const found: string[] = [];
  for (const _ of names) found.push(await watch.nextText());
  assert.deepEqual(found.toSorted(), names.map((name) => `ADDED ${name}`).toSorted());
  if (!hasBookmark) return 0;
  const { type, object } = await watch.next();
  assert.equal(type, "BOOKMARK");
  const { kind, apiVersion, metadata } = object.object();
  assert.deepEqual([kind, apiVersion], ["Pod", "example.test/v1"]);
  assert.deepEqual(metadata.annotations, { [INITIAL_EVENTS_END]: "true" });
  assert.equal(metadata.resourceVersion, String(object.resourceVersion));
  return object.resourceVersion;
}

function semanticsCases(add: Case): void {
  for (const sendInitialEvents of [undefined, false, true])
    for (const allowWatchBookmarks of [false, true])
      for (const from of ["", "0", "first", "current"]) {
        if (sendInitialEvents === undefined && (from === "first" || from === "current")) continue;
        const name = `sendInitialEvents=${sendInitialEvents} bookmarks=${allowWatchBookmarks} RV=${from}`;
        add(`watch with ${name}`, async (it) => {
          const before = await it.storage.currentResourceVersion();
          for (const pods of ["1", "2", "3"]) await create(it, pod("ns", pods));
          const current = await it.storage.currentResourceVersion();
          await it.storage.getList("/pods/", {
            ...listOptions({ resourceVersion: String(current) }),
            resourceVersionMatch: "NotOlderThan",
          });
          const revisions: Record<string, string> = { first: `${before}`, current: `${current}` };
          const watch = await record(it, "/pods/ns", {
            resourceVersion: revisions[from] ?? from,
            sendInitialEvents,
            predicate: predicate({ allowWatchBookmarks }),
          });
          if (sendInitialEvents ?? true) {
            const ends = sendInitialEvents === true && allowWatchBookmarks;
            const at = await initialEvents(watch, ["1", "2", "3"], ends);
            if (ends) assert.ok(at >= current);
          } else if (from === "first")
            for (const pods of ["1", "2", "3"])
              assert.equal(await watch.nextText(), `ADDED ${pods}`);
          await create(it, pod("ns", "4"));
          await it.storage.delete("/pods/ns/4");
          assert.equal(await watch.nextText(), "ADDED 4");
          assert.equal(await watch.nextText(), "DELETED 4");
          watch.stop();
        });
      }

  add(
    "initial events match the selector, and their bookmark has the store's revision",
    async (it) => {
      for (const name of ["1", "2", "3"]) await create(it, pod("ns", name));
      const { resourceVersion } = await create(it, pod("other", "1"));
      const watch = await record(it, "/pods/ns", {
        sendInitialEvents: true,
        predicate: predicate({
          field: where("metadata.name", "=", "2"),
          allowWatchBookmarks: true,
        }),
      });
      assert.equal(await initialEvents(watch, ["2"], true), resourceVersion);
      watch.stop();
    },
  );

  add("initial events not older than a revision that is not there yet", async (it) => {
    await create(it, FOO);
    const late = String((await it.storage.currentResourceVersion()) + 1_000_000);
    const watch = record(it, "/pods/", { resourceVersion: late, sendInitialEvents: true });
    await assert.rejects(
      watch.then(async (started) => {
        throw (await started.end()) ?? new Error("no error");
      }),
      /Too large resource version/,
    );
  });
}

function progressCases(add: Case): void {
  add("progress is a bookmark with the store's revision", async (it) => {
    const { resourceVersion } = await create(it, FOO);
    const watch = await record(it, KEY, {
      resourceVersion: String(resourceVersion),
      progressNotify: true,
      recursive: false,
      predicate: predicate({ allowWatchBookmarks: true }),
    });
    const latest = await it.increaseRevision();
    const asking = setInterval(() => void it.storage.requestWatchProgress(), 20);
    try {
      for (;;) {
        const { type, object } = await watch.next();
        assert.equal(type, "BOOKMARK");
        const { kind, metadata } = object.object();
        assert.equal(kind, "Pod");
        assert.equal(metadata.name, undefined);
        assert.ok(object.resourceVersion >= resourceVersion);
        if (object.resourceVersion >= latest) break;
      }
    } finally {
      clearInterval(asking);
    }
    watch.stop();
  });
}

function endCases(add: Case, { isCache = false }: StorageContractOptions): void {
  add("a watch of an aborted caller ends without an error", async (it) => {
    const stop = new AbortController();
    const watch = await record(it, "/pods/", { resourceVersion: "0", signal: stop.signal });
    await create(it, FOO);
    assert.equal(await watch.nextText(), "ADDED foo");
    stop.abort();
    assert.equal(await watch.end(), undefined);
  });

  add("events wait for a listener that pauses", async (it) => {
    const { resourceVersion } = await create(it, FOO);
    const watch = await it.storage.watch("/pods/", {
      ...listOptions({ resourceVersion: String(resourceVersion) }),
    });
    const names: string[] = [];
    let isDone: () => void = () => {};
    const done = new Promise<void>((resolve) => {
      isDone = resolve;
    });
    watch.start({
      event: ({ object }) => {
        names.push(object.object().metadata.name!);
        if (names.length === 10) isDone();
        else setImmediate(() => watch.resume());
        return false;
      },
      ended: () => {},
    });
    const expected = Array.from({ length: 10 }, (_, at) => `pod-${at}`);
    for (const name of expected) await create(it, pod("ns", name));
    await done;
    assert.deepEqual(names, expected);
    watch.stop();
    watch.stop();
  });

  if (isCache) return;
  add("an error ends the watch before further events", async (it) => {
    const { resourceVersion } = await create(it, FOO);
    it.transformer.prefix = "other:";
    await create(it, pod("ns", "broken"));
    it.transformer.prefix = "test:";
    await create(it, pod("ns", "fine"));
    const watch = await record(it, "/pods/", { resourceVersion: String(resourceVersion) });
    const error = await watch.end();
    assert.equal(error?.httpStatus, 500);
    assert.deepEqual(watch.waiting, []);
  });
}
