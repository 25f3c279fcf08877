/**
 * The ends of certificates as metrics: for each role, of the first that ends, and again when files
 * have been read again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Pauses } from "@quorate/host";
import { nodeClock, readRevocations, type TlsOptions, type TlsSource } from "@quorate/host/node";
import { MetricRegistry } from "@quorate/metrics";
import { prometheusExposition } from "@quorate/metrics/node";
import { makeAuthority, makeCertificate, makeRevocationList } from "../../../test/support/certs.ts";
import { settingMetrics } from "../node/setting-metrics.ts";
import { tlsMetrics } from "../node/tls-metrics.ts";
import type { ServerConfig } from "../src/config/server-config.ts";

const DAY_S = 86_400;
const authority = makeAuthority();

function certificate(validDays: number): { certPem: string; keyPem: string } {
  return makeCertificate({ name: "x", issuer: authority, validDays });
}

/** Samples of the metrics about TLS: in how many days each ends. */
async function daysLeft(registry: MetricRegistry): Promise<Record<string, number>> {
  const text = await prometheusExposition(registry).text();
  const samples = [...text.matchAll(/^quorate_tls_(\w+)_seconds\{role="(\w+)"\} (\S+)$/gm)];
  return Object.fromEntries(
    samples.map(([, name, role, end]) => [
      `${name} ${role}`,
      Math.round((Number(end) - Date.now() / 1000) / DAY_S),
    ]),
  );
}

test("each role has the end of its certificate, of several the first; files that are read again count at the next scrape", async () => {
  const registry = new MetricRegistry();
  const old = makeCertificate({ name: "old-ca", isCa: true, validDays: 5 });
  const newer = makeCertificate({ name: "new-ca", isCa: true, validDays: 500 });
  const list = makeRevocationList(authority, []);
  let current: TlsOptions = {
    ...certificate(90),
    trustedCaPem: newer.certPem + old.certPem,
    revokedSerials: new Set(),
    crlNextUpdateMs: (await readRevocations(list, new Pauses(nodeClock.turns))).nextUpdateMs,
  };
  const client: TlsSource = {
    get current() {
      return current;
    },
    onChange: () => () => {},
  };
  const dialling = certificate(30);
  const peer: TlsSource = {
    current: { ...certificate(60), clientCertPem: dialling.certPem, clientKeyPem: dialling.keyPem },
    onChange: () => () => {},
  };
  tlsMetrics(registry, { client, peer });
  assert.deepEqual(await daysLeft(registry), {
    "certificate_not_after server": 90,
    "certificate_not_after client_ca": 5,
    "certificate_not_after peer": 60,
    "certificate_not_after peer_dialling": 30,
    "crl_next_update client": 1,
  });
  current = certificate(200);
  assert.deepEqual(await daysLeft(registry), {
    "certificate_not_after server": 200,
    "certificate_not_after peer": 60,
    "certificate_not_after peer_dialling": 30,
  });
});

test("a chain ends with the first of its certificates; a member without TLS has no such metric", async () => {
  const registry = new MetricRegistry();
  const leaf = certificate(300);
  const chain = {
    ...leaf,
    certPem: leaf.certPem + makeCertificate({ name: "between", isCa: true, validDays: 20 }).certPem,
  };
  tlsMetrics(registry, { client: undefined, peer: { current: chain, onChange: () => () => {} } });
  assert.deepEqual(await daysLeft(registry), { "certificate_not_after peer": 20 });
  const plain = new MetricRegistry();
  tlsMetrics(plain, { client: undefined, peer: undefined });
  assert.deepEqual(await daysLeft(plain), {});
});

test("settings that should be the same on all members", async () => {
  const registry = new MetricRegistry();
  settingMetrics(registry, {
    heartbeatIntervalMs: 100,
    electionTimeoutMs: 1500,
    quotaAutoDisarm: true,
    selfHeal: false,
  } as ServerConfig);
  const text = await prometheusExposition(registry).text();
  for (const line of [
    "quorate_server_heartbeat_interval_seconds 0.1",
    "quorate_server_election_timeout_seconds 1.5",
    "quorate_server_quota_auto_disarm 1",
    "quorate_server_self_heal 0",
  ]) {
    assert.ok(text.includes(`\n${line}\n`), line);
  }
});
