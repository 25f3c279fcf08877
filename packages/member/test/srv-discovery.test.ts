/** The members of a new cluster by SRV records: which are taken, and which name is whose. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Names, type SrvTarget, silentLogger } from "@quorate/host";
import type { MemberConfig } from "../src/config/member-config.ts";
import { initialClusterText, parseUrls } from "../src/config/url.ts";
import { discovered } from "../src/membership/discovered.ts";
import { discoverBySrv } from "../src/membership/srv-discovery.ts";

type Records = Readonly<Record<string, readonly SrvTarget[]>>;

/** Hosts resolve to themselves with "ip-" before them, but those that begin with "lost". */
const namesOf = (records: Records): Names => ({
  lookupSrv: async (service, domain) => {
    const found = records[`${service}.${domain}`];
    if (found === undefined) throw new Error("ENOTFOUND");
    return found;
  },
  resolveHost: async (host) => {
    if (host.startsWith("lost")) throw new Error(`${host} is not known`);
    return `ip-${host}`;
  },
});

const at = (host: string, port = 2380): SrvTarget => ({ host, port });

async function find(records: Records, more: Partial<MemberConfig> = {}, serviceName = "") {
  const config = {
    name: "self",
    advertisePeerUrls: parseUrls("http://self:2380"),
    ...more,
  } as MemberConfig;
  const deps = { names: namesOf(records), logger: silentLogger };
  return initialClusterText(await discoverBySrv(config, { domain: "d", serviceName }, deps));
}

const HTTP = "etcd-server.d";
const HTTPS = "etcd-server-ssl.d";

test("the record of this member has its name, the others have numbers", async () => {
  assert.equal(
    await find({ [HTTP]: [at("a"), at("self"), at("b")] }),
    "0=http://a:2380,1=http://b:2380,self=http://self:2380",
  );
  assert.equal(
    await find({ [HTTP]: [at("a"), at("b"), at("self")] }, { name: "0" }),
    "0=http://self:2380,1=http://a:2380,2=http://b:2380",
    "a number that is this member's name is not another's",
  );
  assert.equal(
    await find({
      [HTTPS]: [at("a")],
      [HTTP]: [at("self"), at("self", 2381)],
    }),
    "0=https://a:2380,1=http://self:2381,self=http://self:2380",
  );
  assert.equal(
    await find({ "etcd-server-x.d": [at("self")] }, {}, "x"),
    "self=http://self:2380",
    "of a service with a name",
  );
  const two = { advertisePeerUrls: parseUrls("http://self:2380,http://self:2381") };
  assert.equal(
    await find({ [HTTP]: [at("self"), at("::1"), at("self", 2381)] }, two),
    "0=http://[::1]:2380,self=http://self:2380,self=http://self:2381",
  );
});

test("records that are no member's are left out, and an error names them", async () => {
  const bad = [at("."), at("a b"), at("-a"), at("a."), at("1:x"), at("n".repeat(254)), at("a", 0)];
  assert.equal(await find({ [HTTP]: [...bad, at("lost"), at("self")] }), "self=http://self:2380");
  const longest = "n".repeat(253);
  assert.equal(
    await find({ [HTTP]: [at(longest), at("self")] }),
    `0=http://${longest}:2380,self=http://self:2380`,
  );
  await assert.rejects(find({ [HTTP]: bad }), /no members by --discovery-srv=d: .*"\.:2380"/);
  await assert.rejects(
    find({ [HTTPS]: [at("self")] }),
    /no members by .* bootstrap at https:\/\/self:2380 .* has scheme mismatch/,
  );
  await assert.rejects(find({}), /_etcd-server-ssl ENOTFOUND; .*_etcd-server ENOTFOUND/);
  await assert.rejects(
    find({ [HTTPS]: [], [HTTP]: [at("a")] }),
    /cannot find local etcd member "self".*0=http:\/\/a:2380, and none of these is --initial-advertise-peer-urls$/,
  );
  await assert.rejects(
    find({ [HTTPS]: [], [HTTP]: [at("a"), at("lost")] }),
    /--initial-advertise-peer-urls \(http:\/\/lost:2380 from DNS for etcd-server: lost is not known\)$/,
  );
  await assert.rejects(
    find({ [HTTP]: [at("self")] }, { advertisePeerUrls: parseUrls("http://lost:1") }),
    /cannot resolve the host of http:\/\/lost:1/,
  );
});

test("a service has 64 records at most", async () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => at(`m${i}`));
  await find({ [HTTP]: [...many(63), at("self")] });
  await assert.rejects(find({ [HTTP]: many(65) }), /has 65 SRV records, more than the 64/);
});

test("members are only looked for where the flags say so, and with what that takes", async () => {
  const deps = { clock: undefined!, logger: silentLogger };
  const config = (more: object) => ({ isNewCluster: true, ...more }) as MemberConfig;
  const plain = config({});
  assert.equal(await discovered(plain, deps), plain);
  const joins = config({ discovery: {}, isNewCluster: false });
  assert.equal(await discovered(joins, deps), joins);
  await assert.rejects(discovered(config({ discoverySrv: {} }), deps), /no DNS resolver/);
  const byToken = config({ discovery: {}, advertisePeerUrls: [], initialClusterToken: "" });
  await assert.rejects(discovered(byToken, deps), /no client for --discovery-endpoints/);
  const bySrv = config({
    name: "self",
    advertisePeerUrls: parseUrls("http://self:2380"),
    discoverySrv: { domain: "d", serviceName: "" },
  });
  const names = namesOf({ [HTTP]: [at("self")] });
  const found = await discovered(bySrv, { ...deps, names });
  assert.equal(initialClusterText(found.initialCluster), "self=http://self:2380");
});
