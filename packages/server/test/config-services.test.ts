/** Configuration of log rotation and of the discovery service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { refused, run } from "./support/config.ts";

test("log rotation is read from its JSON, and what is wrong with it is named", async () => {
  const json = (text: string) => [
    "--enable-log-rotation",
    "--log-outputs=/var/log/q.log",
    `--log-rotation-config-json=${text}`,
  ];
  const all = '{"maxsize":2,"maxage":3,"maxbackups":4,"localtime":true,"compress":true}';
  assert.deepEqual((await run(json(all))).config.log.rotation, {
    maxFileBytes: 2 << 20,
    maxAgeMs: 3 * 86_400_000,
    keepFiles: 4,
    localTime: true,
    compress: true,
  });
  const { rotation } = (await run(json("{}"))).config.log;
  assert.equal(rotation?.maxFileBytes, 100 << 20);
  for (const [text, why] of [
    ["{", /^improperly formatted log rotation config: /],
    ["[]", /^invalid log rotation config: it must be an object/],
    ['{"maxsize":"1"}', /^invalid log rotation config: maxsize must be a number$/],
    ['{"maxsize":-1}', /maxsize must be a whole number from 0 to 1000000, got -1$/],
    ['{"maxage":1.5}', /maxage must be a whole number/],
    ['{"compress":1}', /compress must be a boolean$/],
    ['{"maxSize":1}', /unknown field maxSize; the fields are maxsize, maxage, maxbackups, /],
  ] as const)
    await refused("BadValue", why, json(text));
});

test("the discovery service's settings, and what contradicts itself in them", async () => {
  const flags = (...more: readonly string[]) => [
    "--discovery-endpoints=https://b:1,a:2",
    "--discovery-token=t",
    ...more,
  ];
  const { config } = await run(flags("--discovery-user=ann:se:cret", "--discovery-cacert=ca.pem"));
  assert.deepEqual(config.discovery?.endpoints, ["a:2", "https://b:1"]);
  assert.deepEqual(config.discovery?.auth, { name: "ann", password: "se:cret" });
  assert.equal(config.initialClusterToken, "t");
  for (const [more, why] of [
    [["--initial-cluster=a=http://a:1"], /^multiple discovery or bootstrap flags are set/],
    [["--discovery-cert=x"], /--discovery-cert and --discovery-key must be set together/],
    [["--discovery-user=ann"], /^--discovery-user needs a password/],
    [["--discovery-user=a:b", "--discovery-password=c"], /contains a password/],
    [["--discovery-password=c"], /^--discovery-password needs --discovery-user/],
    [["--discovery-request-timeout=0s"], /^--discovery-request-timeout must be >0/],
    [["--discovery-keepalive-time=-1s"], /must not be negative/],
    [["--discovery-token=a/b"], /must not contain a slash/],
    [["--discovery-endpoints=a:1,,b:2"], /must not contain empty endpoints/],
    [["--discovery-token="], /^both --discovery-token and --discovery-endpoints must be set/],
  ] as const)
    await refused("Contradiction", why, flags(...more));
});

test("a negative retention, which would compact in a loop, is refused", async () => {
  const negative = "--auto-compaction-retention=-";
  await refused("BadValue", /auto-compaction-retention/, [`${negative}1`]);
  await refused("Contradiction", /must not be negative/, [`${negative}1h`]);
  const byRevision = [`${negative}5`, "--auto-compaction-mode=revision"];
  await refused("BadValue", /auto-compaction-retention/, byRevision);
});
