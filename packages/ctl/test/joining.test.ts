/** What is found against a member that is to join, on constructed views of a cluster. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Member, ResponseHeader, StatusResponse } from "@quorate/proto";
import type { Member as StoredMember } from "@quorate/store";
import { makeCertificate } from "../../../test/support/certs.ts";
import type { ClusterView, MemberView } from "../src/doctor/view.ts";
import { diagnoseJoin, diagnoseStored, type Joiner } from "../src/joining/diagnose.ts";
import { MetricsText } from "../src/observe/metrics-text.ts";

const NOW_MS = Date.UTC(2026, 10, 22);
const MIB = 1024 * 1024;

interface Parts {
  readonly view?: Partial<MemberView>;
  readonly status?: Partial<StatusResponse>;
  readonly member?: Partial<Member>;
}

function memberView(n: number, { view, status, member }: Parts = {}): MemberView {
  const header = ResponseHeader.create({ memberId: BigInt(n), clusterId: 9n });
  return {
    label: `m${n}`,
    endpoint: `http://h${n}:2379`,
    member: Member.create({
      ID: BigInt(n),
      name: `m${n}`,
      peerURLs: [`http://h${n}:2380`],
      clientURLs: [`http://h${n}:2379`],
      ...member,
    }),
    status: StatusResponse.create({
      header,
      version: "3.6.8",
      leader: 1n,
      raftIndex: 100,
      raftAppliedIndex: 100,
      dbSize: 100 * MIB,
      ...status,
    }),
    failure: undefined,
    metrics: undefined,
    clock: { lowMs: -5, highMs: 5 },
    certificate: undefined,
    peerCertificate: undefined,
    ...view,
  };
}

function viewOf(members: readonly MemberView[]): ClusterView {
  const limits = { fsyncMs: 100, clockMs: 1000, certificateDays: 1 };
  const command = (words: string): string => `quoratectl ${words}`;
  return { members, files: [], disk: undefined, nowMs: NOW_MS, limits, endpoint: "e", command };
}

const three = [1, 2, 3].map((n) => memberView(n));
const JOINER: Joiner = {
  peerUrls: ["http://h4:2380"],
  certificate: undefined,
  space: { path: "/data", freeBytes: 10_000 * MIB },
};

function found(members: readonly MemberView[], joiner: Partial<Joiner> = {}): string[] {
  const joiners = [{ ...JOINER, ...joiner }];
  return diagnoseJoin({ cluster: viewOf(members), peerLists: [], joiners }).map(
    ({ severity, check, seen }) => `${severity} ${check}: ${seen}`,
  );
}

test("nothing speaks against a member that joins a healthy cluster", () => {
  assert.deepEqual(found(three), []);
  // What was added for it before is no finding.
  const added = memberView(4, {
    view: { label: "4", status: undefined, failure: "it has published no client URL" },
    member: { name: "", isLearner: true },
  });
  assert.deepEqual(found([...three, added]), []);
});

test("versions before 3.5 and after 3.7, and another learner, are errors with a next step", () => {
  const old = memberView(2, { status: { version: "3.4.30" } });
  assert.deepEqual(found([three[0]!, old, three[2]!]), ["error version: version 3.4.30"]);
  const later = memberView(2, { status: { version: "3.8.0" } });
  assert.deepEqual(found([three[0]!, later, three[2]!]), ["error version: version 3.8.0"]);
  const learner = memberView(5, { member: { isLearner: true } });
  const [one, ...others] = diagnoseJoin({
    cluster: viewOf([...three, learner]),
    peerLists: [],
    joiners: [JOINER],
  });
  assert.equal(others.length, 0);
  assert.equal(one?.check, "learner");
  assert.deepEqual(one?.run, ["quoratectl member remove 5"]);
});

test("alarms, silent members and a missing leader are errors", () => {
  const alarmed = memberView(1, { status: { errors: ["memberID:1 alarm:NOSPACE "] } });
  assert.match(found([alarmed, ...three.slice(1)]).join(), /^error alarm: the alarm NOSPACE/);
  const silent = memberView(3, { view: { status: undefined, failure: "connection refused" } });
  assert.match(found([...three.slice(0, 2), silent]).join(), /^error reachable: does not respond/);
  const lost = [1, 2, 3].map((n) => memberView(n, { status: { leader: 0n } }));
  assert.match(found(lost).join(), /^error leader: no member has a leader/);
});

test("members that one list has and another has not are named, with ids and URLs", () => {
  const stored = (n: number): StoredMember => ({
    id: BigInt(n),
    name: `m${n}`,
    peerUrls: [`http://h${n}:2380`],
    clientUrls: [],
    isLearner: false,
  });
  const view = viewOf(three);
  assert.deepEqual(diagnoseStored(view, "m1", [1, 2, 3].map(stored)), []);
  const [zombie] = diagnoseStored(view, "m1", [1, 2, 3, 77].map(stored));
  assert.match(zombie!.seen, /only there: 4d \(m77, http:\/\/h77:2380\)$/);
  assert.match(zombie!.next, /3\.5\.26/);
  const peerLists = [{ label: "m2", members: [1, 2].map(stored) }];
  const [missing] = diagnoseJoin({ cluster: view, peerLists, joiners: [JOINER] });
  assert.match(missing!.seen, /missing there: 3 \(m3, http:\/\/h3:2380\)$/);
});

test("too little space, another scheme, a clock that is off, and features that differ", () => {
  const space = { path: "/data", freeBytes: 400 * MIB };
  assert.match(found(three, { space }).join(), /^error space: .* are free in \/data/);
  assert.match(
    found(three, { peerUrls: ["https://h4:2380"] }).join(),
    /^error peer-urls: .* the peer URLs of all others are http$/,
  );
  const late = memberView(2, { view: { clock: { lowMs: -9000, highMs: -1500 } } });
  assert.match(found([three[0]!, late, three[2]!]).join(), /^warning clock: its clock is at least/);
  const nearly = memberView(2, { view: { clock: { lowMs: -2500, highMs: -900 } } });
  assert.deepEqual(found([three[0]!, nearly, three[2]!]), []);
  const featured = (n: number, value: number) => {
    const text = `etcd_server_feature_enabled{name="LeaseCheckpoint",stage="ALPHA"} ${value}\n`;
    return memberView(n, { view: { metrics: new MetricsText(text) } });
  };
  assert.deepEqual(found([featured(1, 1), featured(2, 0), three[2]!]), [
    "warning features: the feature LeaseCheckpoint is on here and off on m2",
  ]);
});

test("a certificate must hold the host of each advertised URL, and be valid", () => {
  const secure = [1, 2, 3].map((n) =>
    memberView(n, { member: { peerURLs: [`https://h${n}:2380`] } }),
  );
  const nowMs = NOW_MS;
  const pemOf = (dnsNames: readonly string[], fromMs: number, untilMs: number) =>
    makeCertificate({ name: "m4", dnsNames, validMs: [fromMs, untilMs] }).certPem;
  const of = (pem: string): string[] =>
    found(secure, { peerUrls: ["https://h4:2380"], certificate: { path: "peer.crt", pem } });
  assert.deepEqual(of(pemOf(["h4"], nowMs - 1e6, nowMs + 1e6)), []);
  assert.deepEqual(of(pemOf(["h5"], nowMs - 1e6, nowMs + 1e6)), [
    "error certificate: peer.crt is not for the host of https://h4:2380: it has DNS:h5",
  ]);
  assert.match(of(pemOf(["h4"], nowMs - 2e6, nowMs - 1e6)).join(), /peer\.crt expired at Nov 21/);
  assert.match(of("nothing").join(), /peer\.crt has no certificate in PEM$/);
});
