/** Lists and watches of shards, on sockets: the feature gate ShardedListAndWatch. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { kubeAccessOf, metaProtobuf } from "@quorate/kube-storage";
import { Agent, request } from "undici";
import { until } from "../../../../test/support/until.ts";
import { DEFAULT_GATES } from "../../node/feature-gates.ts";
import { type RunningApiServer, startApiServer } from "../../node/start.ts";

const GATES = { ...DEFAULT_GATES, ShardedListAndWatch: true };
const [FIRST, MIDDLE, END] = ["0x0000000000000000", "0x8000000000000000", "0x10000000000000000"];
const UID = "object.metadata.uid";
const NAMESPACE = "object.metadata.namespace";

const range = (field: string, start: string, end: string) =>
  `shardRange(${field}, '${start}', '${end}')`;
const HALVES = [range(UID, FIRST, MIDDLE), range(UID, MIDDLE, END)] as const;

/** FNV-1a, as the specification has it. */
function hashOf(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text))
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}
const isLow = (text: string): boolean => hashOf(text) < 2n ** 63n;

interface Named {
  readonly metadata: { readonly name: string; readonly uid: string; readonly namespace: string };
}
const nameOf = ({ metadata }: Named): string => metadata.name;
const select = (selector: string): string => `shardSelector=${encodeURIComponent(selector)}`;

/** Connections of a kubeconfig's user. */
function agentOf(kubeconfig: string): Agent {
  const access = kubeAccessOf(JSON.parse(kubeconfig), "kubeconfig", () => "");
  const { trusted: ca, cert, key } = access;
  return new Agent({ connect: { ca, cert, key } });
}

/** The lines of a watch so far, and its end. */
async function watching(api: RunningApiServer, path: string) {
  const dispatcher = agentOf(api.kubeconfig);
  const { body } = await request(`${api.url}${path}`, { dispatcher });
  let text = "";
  body.on("data", (bytes) => {
    text += bytes;
  });
  body.on("error", () => {});
  return {
    events: () =>
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { type: string; object: Named }),
    stop: async () => {
      body.destroy();
      await dispatcher.destroy();
    },
  };
}

for (const watchCache of [true, false])
  describe(`shards ${watchCache ? "of the cache" : "of the store"}`, () => {
    let api: RunningApiServer;
    const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
    const ok = async (target: string, options: object = {}) => {
      const { status, body } = await api.request(target, options);
      assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);
      return body;
    };
    const make = (namespace: string, name: string, labels = {}) =>
      ok(path(namespace), {
        body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels } },
      });

    before(async () => {
      api = await startApiServer({ featureGates: GATES, watchCache });
      for (const name of ["a", "b", "c", "aa"]) {
        await ok("/api/v1/namespaces", {
          body: { apiVersion: "v1", kind: "Namespace", metadata: { name } },
        });
        for (let i = 0; i < 8; i++) await make(name, `m${i}`, { some: "label" });
      }
    });
    after(() => api.stop());

    const ALL = "/api/v1/configmaps?labelSelector=some";

    it("lists each object in one half", async () => {
      const whole: Named[] = (await ok(ALL)).items;
      assert.equal(whole.length, 32);
      const low = whole.filter(({ metadata }) => isLow(metadata.uid));
      assert.ok(low.length > 0 && low.length < 32);
      for (const version of ["", "&resourceVersion=0"]) {
        const [first, second] = await Promise.all(
          HALVES.map((half) => ok(`${ALL}&${select(half)}${version}`)),
        );
        assert.deepEqual(first.items, low);
        assert.deepEqual(
          second.items,
          whole.filter(({ metadata }) => !isLow(metadata.uid)),
        );
        assert.deepEqual(second.metadata.shardInfo, { selector: HALVES[1] });
      }
      const both = await ok(`${ALL}&${select(` ${HALVES.join("||")} `)}`);
      assert.deepEqual(both.items, whole);
      assert.deepEqual(both.metadata.shardInfo, { selector: HALVES.join(" || ") });
    });

    it("lists shards in pages, without a count of what remains", async () => {
      const wanted = (await ok(`/api/v1/configmaps?${select(HALVES[0])}`)).items.map(nameOf);
      const names: string[] = [];
      let token = "";
      do {
        const page = await ok(
          `/api/v1/configmaps?limit=3&${select(HALVES[0])}&continue=${encodeURIComponent(token)}`,
        );
        assert.equal(page.metadata.remainingItemCount, undefined);
        names.push(...page.items.map(nameOf));
        token = page.metadata.continue ?? "";
      } while (token !== "");
      assert.deepEqual(names, wanted);
      assert.ok(names.length > 3);
    });

    it("lists shards by namespaces, where other selectors count, too", async () => {
      const shard = range(NAMESPACE, FIRST, MIDDLE);
      const target = `${ALL}&fieldSelector=metadata.name%3Dm1&${select(shard)}`;
      const { items } = await ok(target);
      const wanted = ["a", "b", "c", "aa"].filter(isLow);
      assert.ok(wanted.length > 0 && wanted.length < 4, String(wanted));
      assert.deepEqual(
        items.map(({ metadata }: Named) => `${metadata.namespace}/${metadata.name}`),
        wanted.map((namespace) => `${namespace}/m1`),
      );
    });

    it("tells a shard only of whole objects", async () => {
      const dispatcher = agentOf(api.kubeconfig);
      for (const kind of ["Table", "PartialObjectMetadataList"]) {
        const accept = `application/json;as=${kind};v=v1;g=meta.k8s.io`;
        const { body } = await request(`${api.url}${ALL}&${select(HALVES[0])}`, {
          dispatcher,
          headers: { accept },
        });
        const list = (await body.json()) as { kind: string; metadata: object };
        assert.equal(list.kind, kind);
        assert.ok(!("shardInfo" in list.metadata));
      }
      const { body } = await request(`${api.url}${ALL}&${select(HALVES[0])}`, {
        dispatcher,
        headers: { accept: "application/vnd.kubernetes.protobuf" },
      });
      const { message } = metaProtobuf.unwrap(new Uint8Array(await body.arrayBuffer()));
      // Field 1, whose length is below 128 here: the list's metadata.
      const listMeta = message.subarray(2, 2 + message[1]);
      const decoded = metaProtobuf.decode("ListMeta", listMeta) as { readonly shardInfo?: object };
      assert.deepEqual(decoded.shardInfo, { selector: HALVES[0] });
      await dispatcher.close();
    });

    it("watches a shard", async (t) => {
      const { metadata } = await ok(path("a"));
      const from = `resourceVersion=${metadata.resourceVersion}`;
      const watch = await watching(api, `${path("a")}?watch=1&${from}&${select(HALVES[0])}`);
      t.after(watch.stop);
      const made: Named[] = [];
      for (let i = 0; i < 12; i++) made.push(await make("a", `w${i}`));
      for (const { metadata: one } of made)
        await ok(`${path("a")}/${one.name}`, { method: "DELETE" });
      const low = made.filter((one) => isLow(one.metadata.uid));
      assert.ok(low.length > 0 && low.length < 12);
      await until("all events have come", () => watch.events().length >= 2 * low.length);
      const shown = watch.events().map(({ type, object }) => `${type} ${nameOf(object)}`);
      const wanted = ["ADDED", "DELETED"].flatMap((type) =>
        low.map((one) => `${type} ${nameOf(one)}`),
      );
      assert.deepEqual(shown, wanted);
    });

    it("begins a watch with the shard's present objects", async (t) => {
      const wanted: string[] = (await ok(`${path("b")}?${select(HALVES[1])}`)).items.map(nameOf);
      const initial =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
      const watch = await watching(api, `${path("b")}?watch=1&${initial}&${select(HALVES[1])}`);
      t.after(watch.stop);
      const isOver = () => watch.events().some(({ type }) => type === "BOOKMARK");
      await until("the initial events have ended", isOver);
      const added = watch.events().filter(({ type }) => type === "ADDED");
      assert.deepEqual(added.map(({ object }) => nameOf(object)).sort(), wanted.sort());
    });

    it("deletes a collection's shard alone", async () => {
      const rest = (await ok(`${path("c")}?${select(HALVES[1])}`)).items.map(nameOf);
      const gone = await ok(`${path("c")}?${select(HALVES[0])}`, { method: "DELETE" });
      assert.deepEqual(gone.metadata.shardInfo, { selector: HALVES[0] });
      assert.deepEqual((await ok(path("c"))).items.map(nameOf), rest);
    });

    it("takes many ranges, which overlap", async () => {
      const hex = (step: number) => `0x${(BigInt(step) << 56n).toString(16).padStart(16, "0")}`;
      const steps = Array.from({ length: 100 }, (_, i) => (i * 7) % 100);
      const many = steps.map((i) => range(UID, hex(i), hex(i + 3))).join("||");
      const all: Named[] = (await ok(ALL)).items;
      const listed: Named[] = (await ok(`${ALL}&${select(many)}`)).items;
      assert.deepEqual(
        listed,
        all.filter(({ metadata }) => hashOf(metadata.uid) < BigInt(102) << 56n),
      );
    });

    it("says what is wrong with a selector, to those who may list", async () => {
      const message = async (target: string) => {
        const { status, body } = await api.request(target);
        return `${status} ${body.message}`;
      };
      const wrong: readonly (readonly [string, string])[] = [
        [" ", "empty shard selector is not allowed; omit the parameter for unfiltered lists"],
        ["shardRange(", "CEL parse error: Syntax error: mismatched input '<EOF>' expecting"],
        [
          `${HALVES[0]} && ${HALVES[1]}`,
          'unsupported function "_&&_"; only shardRange() and || are allowed',
        ],
        ["has(object.a)", 'unsupported function "has"; only shardRange() and || are allowed'],
        ["[1].all(x, x > 0)", 'unsupported function "all"; only shardRange() and || are allowed'],
        [UID, "unexpected expression kind 7; expected shardRange() call or || operator"],
        ["shardRange()", "shardRange() requires exactly 3 arguments, got 0"],
        [
          range("object.metadata.name", FIRST, END),
          'unsupported field path "object.metadata.name"; supported: ' +
            "object.metadata.uid, object.metadata.namespace",
        ],
        [
          "shardRange(f(1), 'a', 'b')",
          "shardRange() first argument: expected field path (e.g. object.metadata.uid), " +
            "got expression kind 1",
        ],
        [`shardRange(${UID}, 0, 8)`, "hexStart must be a string literal, got int64"],
        [
          `shardRange(${UID}, x, 8)`,
          "hexStart must be a string literal (e.g. '0xff'), got expression kind 3",
        ],
        [range(UID, FIRST, "80"), `hexEnd must have '0x' prefix, got "80"`],
        [range(UID, "0x", END), "hexStart: hex value is required after '0x'"],
        [
          range(UID, "0x000000000000000000", END),
          'hexStart: hex value too long (18 chars, max 17): "000000000000000000"',
        ],
        [range(UID, "0x0g", END), 'hexStart: invalid hex character "g" in "0x0g"'],
        [
          range(UID, FIRST, "0x20000000000000000"),
          "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got " +
            '"0x20000000000000000"',
        ],
        [
          range(UID, FIRST, "0xff"),
          'hexEnd must be a 0x-prefixed 16-digit hex value, got "0xff" ' +
            '(did you mean "0x00000000000000ff"?)',
        ],
        [range(UID, MIDDLE, MIDDLE), `shard range start ${MIDDLE} must be less than end ${MIDDLE}`],
        [
          `${HALVES[0]}||${range(NAMESPACE, MIDDLE, END)}`,
          `all shard ranges must use the same field, got "${UID}" and "${NAMESPACE}"`,
        ],
        ["(".repeat(300), "CEL parse error: max recursion depth exceeded: 250"],
      ];
      for (const [selector, why] of wrong)
        for (const watch of ["", "&watch=1"]) {
          const said = await message(`${path("a")}?${select(selector)}${watch}`);
          assert.ok(said.startsWith(`400 invalid shard selector: ${why}`), said);
        }
      const dispatcher = agentOf(await api.kubeconfigFor("nobody", []));
      const target = `${api.url}${path("a")}?${select("shardRange(")}`;
      const { statusCode, body } = await request(target, { dispatcher });
      await body.dump();
      assert.equal(statusCode, 403);
      await dispatcher.close();
    });

    it("refuses a huge selector before it is read", async () => {
      const { status } = await api.request(`${path("a")}?${select("(".repeat(20_000))}`);
      assert.equal(status, 414);
    });
  });

it("shards are passed over where the feature gate is off, as it is by default", async (t) => {
  const api = await startApiServer();
  t.after(() => api.stop());
  for (const selector of [...HALVES, "shardRange("]) {
    const { status, body } = await api.request(`/api/v1/namespaces?${select(selector)}`);
    assert.equal(status, 200);
    assert.equal(body.items.length, 4);
    assert.ok(!("shardInfo" in body.metadata));
  }
});
