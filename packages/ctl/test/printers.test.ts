/**
 * The output formats, byte for byte. The expected texts are etcdctl 3.7's for the same responses.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeIo } from "@quorate/cli/testing";
import {
  AlarmResponse,
  DeleteRangeResponse,
  fromLatin1,
  HashKVResponse,
  KeyValue,
  MemberListResponse,
  PutResponse,
  RangeResponse,
  StatusResponse,
  TxnResponse,
} from "@quorate/proto";
import { alarmForm } from "../src/commands/alarm.ts";
import { hashForm, healthForm, statusForm } from "../src/printers/endpoint-forms.ts";
import { deleteForm, putForm, rangeForm, txnForm } from "../src/printers/kv-forms.ts";
import { memberListForm } from "../src/printers/member-forms.ts";
import { type Format, Printer } from "../src/printers/printer.ts";

function print(format: Format, task: (printer: Printer) => void, isHex = false): FakeIo {
  const io = new FakeIo();
  task(new Printer({ format, isHex }, io));
  return io;
}

const headerJson =
  '{"cluster_id":14443903163313418560,"member_id":11417610130673999598,"revision":3,"raft_term":2}';
const header = {
  clusterId: 14443903163313418560n,
  memberId: 11417610130673999598n,
  revision: 3,
  raftTerm: 2,
};
const record = (key: string, value: string, lease = 0n): Uint8Array =>
  KeyValue.encode({
    key: fromLatin1(key),
    value: fromLatin1(value),
    createRevision: 2,
    modRevision: 3,
    version: 2,
    lease,
  });
const range = RangeResponse.create({
  header,
  kvs: [record("foo", "b<a>z", 7n), record("\xff", "")],
  more: true,
  count: 5,
});

test("get", () => {
  assert.equal(
    print("simple", (printer) => printer.form(rangeForm, range)).outBytes,
    "foo\nb<a>z\n\xff\n\n",
  );
  assert.equal(
    print("simple", (printer) => printer.form(rangeForm, range), true).out,
    "\\x66\\x6f\\x6f\n\\x62\\x3c\\x61\\x3e\\x7a\n\\xff\n\n",
  );
  assert.equal(
    print("json", (printer) => printer.form(rangeForm, range)).out,
    '{"header":{"cluster_id":14443903163313418560,"member_id":11417610130673999598,"revision":3,"raft_term":2},' +
      '"kvs":[{"key":"Zm9v","create_revision":2,"mod_revision":3,"version":2,"value":"YjxhPno=","lease":7},' +
      '{"key":"/w==","create_revision":2,"mod_revision":3,"version":2}],"more":true,"count":5}\n',
  );
  assert.equal(
    print("fields", (printer) => printer.form(rangeForm, range)).out,
    `"ClusterID" : 14443903163313418560
"MemberID" : 11417610130673999598
"Revision" : 3
"RaftTerm" : 2
"Key" : "foo"
"CreateRevision" : 2
"ModRevision" : 3
"Version" : 2
"Value" : "b<a>z"
"Lease" : 7
"Key" : "\\xff"
"CreateRevision" : 2
"ModRevision" : 3
"Version" : 2
"Value" : ""
"Lease" : 0
"More" : true
"Count" : 5
`,
  );
  assert.match(
    print("fields", (printer) => printer.form(rangeForm, range), true).out,
    /^"ClusterID" : c8730d66636ff140\n"MemberID" : 9e737febb6b99eee\n.*"Lease" : 0000000000000007\n/s,
  );
  assert.deepEqual(
    fromLatin1(print("protobuf", (printer) => printer.form(rangeForm, range)).outBytes),
    RangeResponse.encode(range),
  );
});

test("values alone", () => {
  const io = new FakeIo();
  new Printer({ format: "simple", isHex: false, valueOnly: true }, io).form(rangeForm, range);
  assert.equal(io.out, "b<a>z\n\n");
});

test("put and del", () => {
  const put = PutResponse.create({ header, prevKv: record("k", "old") });
  assert.equal(print("simple", (printer) => printer.form(putForm, put)).out, "OK\nk\nold\n");
  assert.equal(
    print("simple", (printer) => printer.form(putForm, PutResponse.create({ header }))).out,
    "OK\n",
  );
  assert.match(
    print("json", (printer) => printer.form(putForm, put)).out,
    /,"prev_kv":\{"key":"aw==",.*\}\}\n$/,
  );
  assert.match(
    print("fields", (printer) => printer.form(putForm, put)).out,
    /\n"PrevKey" : "k"\n.*"PrevLease" : 0\n$/s,
  );
  const del = DeleteRangeResponse.create({ header, deleted: 1, prevKvs: [record("k", "old")] });
  assert.equal(print("simple", (printer) => printer.form(deleteForm, del)).out, "1\nk\nold\n");
  assert.match(
    print("json", (printer) => printer.form(deleteForm, del)).out,
    /,"deleted":1,"prev_kvs":\[\{/,
  );
  assert.match(
    print("fields", (printer) => printer.form(deleteForm, del)).out,
    /\n"Deleted" : 1\n"PrevKey" : "k"\n/,
  );
  assert.equal(
    print("simple", (printer) => printer.form(deleteForm, DeleteRangeResponse.create({ header })))
      .out,
    "0\n",
  );
});

test("txn, also inside another", () => {
  const inner = { header: { ...header, revision: 4 } };
  const txn = TxnResponse.create({
    header,
    succeeded: true,
    responses: [
      { response: { case: "responsePut", value: PutResponse.create(inner) } },
      {
        response: {
          case: "responseRange",
          value: RangeResponse.create({ header: undefined, kvs: [record("a", "b")], count: 1 }),
        },
      },
      {
        response: {
          case: "responseDeleteRange",
          value: DeleteRangeResponse.create({ deleted: 2 }),
        },
      },
      { response: { case: "responseTxn", value: TxnResponse.create({ succeeded: false }) } },
      { response: undefined },
    ],
  });
  assert.equal(
    print("simple", (printer) => printer.form(txnForm, txn)).out,
    "SUCCESS\n\nOK\n\na\nb\n\n2\n\nFAILURE\n\n",
  );
  assert.equal(
    print("json", (printer) => printer.form(txnForm, txn)).out,
    `{"header":${headerJson},"succeeded":true,"responses":[` +
      `{"Response":{"response_put":{"header":${headerJson.replace(":3,", ":4,")}}}},` +
      '{"Response":{"response_range":{"kvs":[' +
      '{"key":"YQ==","create_revision":2,"mod_revision":3,"version":2,"value":"Yg=="}],"count":1}}},' +
      '{"Response":{"response_delete_range":{"deleted":2}}},{"Response":{"response_txn":{}}},{"Response":{}}]}\n',
  );
  assert.match(
    print("fields", (printer) => printer.form(txnForm, txn)).out,
    /\n"Succeeded" : true\n"ClusterID"/,
  );
});

const members = MemberListResponse.create({
  header: { ...header, revision: 0 },
  members: [
    {
      ID: 0x9e737febb6b99eeen,
      name: "default",
      peerURLs: ["http://127.0.0.1:22380"],
      clientURLs: ["http://127.0.0.1:22379"],
      isLearner: false,
    },
    { ID: 7n, name: "", peerURLs: ["http://a:1", "http://b:1"], clientURLs: [], isLearner: true },
  ],
});

test("member list", () => {
  assert.equal(
    print("simple", (printer) => printer.form(memberListForm, members)).out,
    "9e737febb6b99eee, started, default, http://127.0.0.1:22380, http://127.0.0.1:22379, false\n" +
      "7, unstarted, , http://a:1,http://b:1, , true\n",
  );
  assert.equal(
    print("json", (printer) => printer.form(memberListForm, members)).out,
    '{"header":{"cluster_id":14443903163313418560,"member_id":11417610130673999598,"raft_term":2},"members":[' +
      '{"ID":11417610130673999598,"name":"default","peerURLs":["http://127.0.0.1:22380"],"clientURLs":["http://127.0.0.1:22379"]},' +
      '{"ID":7,"peerURLs":["http://a:1","http://b:1"],"isLearner":true}]}\n',
  );
  assert.equal(
    print("json", (printer) => printer.form(memberListForm, members), true).out,
    '{"header":{"cluster_id":"c8730d66636ff140","member_id":"9e737febb6b99eee","raft_term":2},"members":[' +
      '{"ID":"9e737febb6b99eee","name":"default","peerURLs":["http://127.0.0.1:22380"],"clientURLs":["http://127.0.0.1:22379"]},' +
      '{"ID":"7","peerURLs":["http://a:1","http://b:1"],"isLearner":true}]}\n',
  );
  assert.equal(
    print("fields", (printer) => printer.form(memberListForm, members)).out,
    `"ClusterID" : 14443903163313418560
"MemberID" : 11417610130673999598
"RaftTerm" : 2
"ID" : 11417610130673999598
"Name" : "default"
"PeerURL" : "http://127.0.0.1:22380"
"ClientURL" : "http://127.0.0.1:22379"
"IsLearner" : false

"ID" : 7
"Name" : ""
"PeerURL" : "http://a:1"
"PeerURL" : "http://b:1"
"IsLearner" : true

`,
  );
  assert.equal(
    print("table", (printer) => printer.form(memberListForm, members)).out,
    `┌──────────────────┬───────────┬─────────┬────────────────────────┬────────────────────────┬────────────┐
│        ID        │  STATUS   │  NAME   │       PEER ADDRS       │      CLIENT ADDRS      │ IS LEARNER │
├──────────────────┼───────────┼─────────┼────────────────────────┼────────────────────────┼────────────┤
│ 9e737febb6b99eee │   started │ default │ http://127.0.0.1:22380 │ http://127.0.0.1:22379 │      false │
│                7 │ unstarted │         │  http://a:1,http://b:1 │                        │       true │
└──────────────────┴───────────┴─────────┴────────────────────────┴────────────────────────┴────────────┘
`,
  );
});

const status = StatusResponse.create({
  header,
  version: "3.7.0",
  dbSize: 20_480,
  leader: header.memberId,
  raftIndex: 9,
  raftTerm: 2,
  raftAppliedIndex: 8,
  dbSizeInUse: 16_384,
  storageVersion: "3.7.0",
  dbSizeQuota: 2_147_483_648,
  errors: ["one", "two"],
  downgradeInfo: { enabled: true, targetVersion: "3.6.0" },
});

test("endpoint status", () => {
  const answers = [{ endpoint: "h:1", response: status }];
  assert.equal(
    print("simple", (printer) => printer.form(statusForm, answers)).out,
    "h:1, 9e737febb6b99eee, 3.7.0, 3.7.0, 20 kB, 16 kB, 20%, 2.1 GB, true, false, 2, 9, 8, one, two, 3.6.0, true\n",
  );
  assert.equal(
    print("json", (printer) => printer.form(statusForm, answers)).out,
    `[{"Endpoint":"h:1","Status":{"header":${headerJson},` +
      '"version":"3.7.0","dbSize":20480,"leader":11417610130673999598,"raftIndex":9,"raftTerm":2,"raftAppliedIndex":8,' +
      '"errors":["one","two"],' +
      '"dbSizeInUse":16384,"storageVersion":"3.7.0","dbSizeQuota":2147483648,"downgradeInfo":{"enabled":true,"targetVersion":"3.6.0"}}}]\n',
  );
  assert.equal(
    print("fields", (printer) => printer.form(statusForm, answers)).out,
    `"ClusterID" : 14443903163313418560
"MemberID" : 11417610130673999598
"Revision" : 3
"RaftTerm" : 2
"Version" : "3.7.0"
"StorageVersion" : "3.7.0"
"DBSize" : 20480
"DBSizeInUse" : 16384
"DBSizeQuota" : 2147483648
"Leader" : 11417610130673999598
"IsLearner" : false
"RaftIndex" : 9
"RaftAppliedIndex" : 8
"Errors" : [one two]
"Endpoint" : "h:1"
"DowngradeTargetVersion" : "3.6.0"
"DowngradeEnabled" : true

`,
  );
  assert.equal(print("json", (printer) => printer.form(statusForm, [])).out, "null\n");
  // A table without rows is its head alone; an empty store does not divide by zero.
  assert.match(
    print("table", (printer) => printer.form(statusForm, [])).out,
    /^┌[─┬]+┐\n│ ENDPOINT │ ID │ VERSION │.*│\n└[─┴]+┘\n$/,
  );
  assert.match(
    print("simple", (printer) =>
      printer.form(statusForm, [{ endpoint: "h:1", response: StatusResponse.create({}) }]),
    ).out,
    /, 0 B, 0 B, 0%, 0 B, true,/,
  );
});

test("endpoint hashkv", () => {
  const answers = [
    {
      endpoint: "h:1",
      response: HashKVResponse.create({
        header,
        hash: 303_868_176,
        compactRevision: -1,
        hashRevision: 3,
      }),
    },
  ];
  assert.equal(
    print("simple", (printer) => printer.form(hashForm, answers)).out,
    "h:1, 303868176, 3\n",
  );
  assert.match(
    print("json", (printer) => printer.form(hashForm, answers)).out,
    /^\[\{"Endpoint":"h:1","HashKV":\{.*"hash":303868176,"compact_revision":-1,"hash_revision":3\}\}\]\n$/,
  );
  assert.match(
    print("fields", (printer) => printer.form(hashForm, answers)).out,
    /\n"Endpoint" : "h:1"\n"Hash" : 303868176\n"HashRevision" : 3\n\n$/,
  );
  assert.equal(
    print("table", (printer) => printer.form(hashForm, answers)).out,
    "┌──────────┬───────────┬───────────────┐\n│ ENDPOINT │   HASH    │ HASH REVISION │\n├──────────┼───────────┼───────────────┤\n" +
      "│      h:1 │ 303868176 │             3 │\n└──────────┴───────────┴───────────────┘\n",
  );
});

test("alarms", () => {
  const alarms = AlarmResponse.create({
    header: { ...header, revision: 3 },
    alarms: [
      { memberID: 11_417_610_130_673_999_598n, alarm: 1 },
      { memberID: 0n, alarm: 2 },
      { memberID: 7n, alarm: 9 },
    ],
  });
  assert.equal(
    print("simple", (printer) => printer.form(alarmForm, alarms)).out,
    "memberID:11417610130673999598 alarm:NOSPACE\nalarm:CORRUPT\nmemberID:7 alarm:9\n",
  );
  assert.equal(
    print("json", (printer) => printer.form(alarmForm, alarms)).out,
    `{"header":${headerJson},"alarms":[{"memberID":11417610130673999598,"alarm":1},{"alarm":2},{"memberID":7,"alarm":9}]}\n`,
  );
  assert.match(
    print("fields", (printer) => printer.form(alarmForm, alarms)).out,
    /\n"MemberID" : 11417610130673999598\n"AlarmType" : NOSPACE\n\n"MemberID" : 0\n/,
  );
  assert.match(
    print("fields", (printer) => printer.form(alarmForm, alarms), true).out,
    /\n"MemberID" : 7\n"AlarmType" : 9\n\n$/,
  );
  assert.deepEqual(
    fromLatin1(print("protobuf", (printer) => printer.form(alarmForm, alarms)).outBytes),
    AlarmResponse.encode(alarms),
  );
  assert.throws(() => print("table", (printer) => printer.form(alarmForm, alarms)), { code: 4 });
});

test("endpoint health", () => {
  const list = [
    { endpoint: "h:1", health: true, took: "1ms", error: "" },
    { endpoint: "h:2", health: false, took: "5s", error: "context deadline exceeded" },
  ];
  const simple = print("simple", (printer) => printer.form(healthForm, list));
  assert.equal(simple.out, "h:1 is healthy: successfully committed proposal: took = 1ms\n");
  assert.equal(
    simple.err,
    "h:2 is unhealthy: failed to commit proposal: context deadline exceeded\n",
  );
  assert.equal(
    print("json", (printer) => printer.form(healthForm, list)).out,
    '[{"endpoint":"h:1","health":true,"took":"1ms"},{"endpoint":"h:2","health":false,"took":"5s","error":"context deadline exceeded"}]\n',
  );
  assert.equal(
    print("fields", (printer) => printer.form(healthForm, list.slice(0, 1))).out,
    '"Endpoint" : "h:1"\n"Health" : true\n"Took" : 1ms\n"Error" : \n\n',
  );
});

test("a format that a form does not have ends the program with exit code 4", () => {
  assert.throws(() => print("table", (printer) => printer.form(rangeForm, range)), {
    code: 4,
    message: "table not supported as output format",
  });
  assert.throws(() => print("protobuf", (printer) => printer.form(statusForm, [])), {
    code: 4,
    message: "protobuf not supported as output format",
  });
});
