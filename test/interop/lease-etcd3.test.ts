/** Leases, locks and elections of the npm client "etcd3". */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { Etcd3 } from "etcd3";
import { startCluster, type TestCluster } from "../support/cluster.ts";

describe("etcd3", () => {
  let cluster: TestCluster;
  let client: Etcd3;
  let other: Etcd3;

  before(async () => {
    cluster = await startCluster({ size: 3 });
    client = new Etcd3({ hosts: [...cluster.endpoints] });
    other = new Etcd3({ hosts: [...cluster.endpoints].reverse() });
  });
  after(async () => {
    client?.close();
    other?.close();
    await cluster?.destroy();
  });

  test("a lease keeps its key while it is kept alive, and takes it along when it is revoked", async () => {
    const lease = client.lease(60);
    await lease.put("leased").value("here");
    assert.equal(await other.get("leased").string(), "here");
    await lease.keepaliveOnce();
    const id = await lease.grant();
    const status = await other.leaseClient.leaseTimeToLive({ ID: id, keys: true });
    assert.deepEqual(status.keys.map(String), ["leased"]);
    assert.equal(Number(status.grantedTTL), 60);
    assert.ok((await other.leaseClient.leaseLeases()).leases.some((one) => one.ID === id));
    await lease.revoke();
    assert.equal(await other.get("leased").string(), null);
  });

  test("a lease that is gone is noticed", async () => {
    const lease = client.lease(60);
    const id = await lease.grant();
    const lost = once(lease, "lost");
    await other.leaseClient.leaseRevoke({ ID: id });
    await assert.rejects(lease.keepaliveOnce());
    await lost;
  });

  test("a lock excludes and is passed on", async () => {
    const first = client.lock("gate");
    await first.acquire();
    await assert.rejects(other.lock("gate").acquire());
    await first.release();
    assert.equal(await other.lock("gate").do(async () => "inside"), "inside");
  });

  test("a campaign is won, observed, and lost by resigning", async () => {
    const election = client.election("post", 60);
    const observer = await other.election("post", 60).observe();
    const campaign = election.campaign("ann");
    await once(campaign, "elected");
    if (observer.leader() !== "ann") await once(observer, "change");
    assert.equal(observer.leader(), "ann");
    assert.equal(await election.leader(), "ann");
    const next = other.election("post", 60).campaign("bob");
    await campaign.resign();
    await once(next, "elected");
    while (observer.leader() !== "bob") await once(observer, "change");
    await next.resign();
    await observer.cancel();
  });
});
