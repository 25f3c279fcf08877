/** curl over HTTP/1.1 and HTTP/2, plain and TLS: the JSON gateway, and keys by URL. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { endsWith } from "../support/children.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { findProgram } from "../support/executables.ts";

const features =
  findProgram("curl") === undefined
    ? ""
    : execFileSync("curl", ["--version"], { encoding: "utf8" });
const skip =
  features === ""
    ? "curl is not installed"
    : !features.includes("HTTP2") && "curl is built without HTTP/2";

/** Each way to speak: curl's flags, and the version of HTTP that comes of them. */
const WAYS = [
  ["plain", "1.1", ["--http1.1"]],
  // The member does not take the offer to upgrade.
  ["plain", "1.1", ["--http2"]],
  ["plain", "2", ["--http2-prior-knowledge"]],
  ["tls", "1.1", ["--http1.1"]],
  ["tls", "2", ["--http2"]],
] as const;
const base64 = (text: string): string => Buffer.from(text).toString("base64");

describe("curl", { skip }, () => {
  const clusters = new Map<string, TestCluster>();

  before(async () => {
    const [plain, tls] = await Promise.all([
      startCluster({ size: 3 }),
      startCluster({ size: 1, tls: true }),
    ]);
    clusters.set("plain", plain).set("tls", tls);
  });
  after(async () => {
    for (const cluster of clusters.values()) await cluster.destroy();
  });

  for (const [kind, version, flags] of WAYS) {
    test(`${kind}, ${flags.join(" ")}: HTTP/${version}`, async () => {
      const cluster = clusters.get(kind)!;
      const { certs } = cluster;
      const [member] = cluster.members;
      const common = [
        "--silent",
        "--show-error",
        "--max-time",
        "60",
        ...flags,
        ...(certs === undefined
          ? []
          : ["--cacert", certs.ca, "--cert", certs.client, "--key", certs.clientKey]),
      ];
      /** The body that "-d @-" sends. */
      let input = "";
      /** What is printed of a call: the body, then the version and the status. */
      const curl = (path: string, ...args: string[]): string[] =>
        execFileSync(
          "curl",
          [
            ...common,
            ...args,
            "-w",
            "\n%{http_version} %{http_code}",
            `${member.clientUrl}${path}`,
          ],
          { encoding: "utf8", input },
        )
          .trimEnd()
          .split("\n");
      const key = `curl/${kind}/${flags.join("")}`;
      const ok = `${version} 200`;

      // Without a flag for it, curl says application/x-www-form-urlencoded.
      const put = curl("/v3/kv/put", "-d", `{"key":"${base64(key)}","value":"${base64("x")}"}`);
      assert.equal(put.at(-1), ok, put.join("\n"));
      const range = curl("/v3/kv/range", "--json", `{"key":"${base64(key)}"}`);
      assert.equal(range.at(-1), ok, range.join("\n"));
      const { kvs, count } = JSON.parse(range[0]) as {
        kvs: { key: string; value: string; version: string }[];
        count: string;
      };
      assert.deepEqual([kvs[0].value, kvs[0].version, count], [base64("x"), "1", "1"]);
      const absent = curl("/v3/lease/timetolive", "-d", '{"ID":"0x"}');
      assert.equal(absent.at(-1), `${version} 400`, absent.join("\n"));
      assert.equal((JSON.parse(absent[0]) as { code: number }).code, 3);
      assert.equal(curl("/v3/kv/put").at(-1), `${version} 501`);

      // The last value of a large body arrives whole.
      const large = "v".repeat(300_000);
      input = `{"key":"${base64(key)}","value":"${base64(large)}"}`;
      assert.equal(curl("/v3/kv/put", "-d", "@-").at(-1), ok);
      input = "";
      assert.equal(curl(`/kv/${key}`)[0], large);
      assert.equal(curl(`/kv/${key}`, "-X", "PUT", "-d", "by hand").at(-1), `${version} 204`);
      assert.deepEqual(curl(`/kv/${key}`), ["by hand", ok]);

      await watches(common, member.clientUrl, key);
    });
  }

  /** A watch prints a line when it exists and one for each change, while it goes on. */
  async function watches(common: readonly string[], url: string, key: string): Promise<void> {
    const create = `{"create_request":{"key":"${base64(key)}"}}`;
    const watch = endsWith(
      spawn("curl", [...common, "--no-buffer", "-d", create, `${url}/v3/watch`], {
        stdio: ["ignore", "pipe", "inherit"],
      }),
    );
    try {
      const lines: string[] = [];
      for await (const line of createInterface({ input: watch.stdout })) {
        lines.push(line);
        if (lines.length === 3) break;
        execFileSync("curl", [...common, "-X", "PUT", "-d", "changed", `${url}/kv/${key}`]);
      }
      const [created, ...changes] = lines.map(
        (line) =>
          (
            JSON.parse(line) as {
              result: { created?: boolean; events?: { kv: { value: string } }[] };
            }
          ).result,
      );
      assert.equal(created.created, true, lines[0]);
      for (const { events } of changes) assert.equal(events![0].kv.value, base64("changed"));
    } finally {
      watch.kill("SIGKILL");
    }
  }
});
