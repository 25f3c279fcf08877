/**
 * The texts of grpc-js become reasons for operators; a server's own text stays unchanged.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf, wasNeverSent } from "../node/grpc-errors.ts";

const wrapped = (error: string): string =>
  `No connection established. Last error: ${error}. Resolution note: `;

const reasons: readonly (readonly [details: string, reason: string])[] = [
  [wrapped("Error: connect ECONNREFUSED 127.0.0.1:1"), "connection refused"],
  [wrapped("Error: connect ENOENT /run/q.sock"), "no socket at /run/q.sock"],
  [
    wrapped("Error: connect EHOSTUNREACH 10.0.0.1:2379 - Local (10.0.0.2:4711)"),
    "no route to that address",
  ],
  [
    wrapped("Error: self-signed certificate in certificate chain"),
    "self-signed certificate in certificate chain",
  ],
  [
    wrapped(
      "Error: Client network socket disconnected before secure TLS connection was established",
    ),
    "the connection was closed during the TLS handshake",
  ],
  [
    "40E3:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:../deps/openssl/x.c:918:SSL alert number 116\n",
    "the member requires a client certificate (tlsv13 alert certificate required)",
  ],
  [
    wrapped(
      "Error: 40E3:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:../deps/x.c:918:SSL alert number 48\n",
    ),
    "the member refused this client's certificate (tlsv1 alert unknown ca)",
  ],
  [
    wrapped(
      "Error: 40234A281E7F0000:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:../deps/tlsany_meth.c:78:\n",
    ),
    "the server there does not speak TLS (wrong version number)",
  ],
  [
    wrapped("Error: 40E3:error:0A000410:SSL routines:f:some other reason:../deps/x.c:1:\n"),
    "the TLS handshake failed (some other reason)",
  ],
  [wrapped("Failed to connect (2026-11-22T01:40:31.023Z)"), "the connection was closed"],
  [wrapped("Protocol error (2026-11-22T01:41:00.784Z)"), "the server there does not speak gRPC"],
  [wrapped("null"), "no connection"],
  ["No connection established", "no connection"],
  ["Name resolution failed for target dns:m9:2379", "the name m9:2379 cannot be resolved"],
  [
    "Deadline exceeded after 1.002s,LB pick: 0.001s,remote_addr=127.0.0.1:2379",
    "no response in time",
  ],
  [
    "Received RST_STREAM with code 2 (Internal server error)",
    "the server reset the stream (HTTP/2 code 2)",
  ],
  ["Connection dropped", "the connection was closed"],
  [
    "Attempted to send message with a size larger than 100",
    "trying to send message larger than max (7 vs. 100)",
  ],
  [
    "Received message larger than max (300 vs 200)",
    "grpc: received message larger than max (300 vs. 200)",
  ],
  ["etcdserver: request timed out", "etcdserver: request timed out"],
  ["", ""],
];

test("reasons", () => {
  for (const [details, reason] of reasons) assert.equal(reasonOf(details, 7), reason, details);
});

test("a call without a connection was never sent; one whose connection broke may have been", () => {
  for (const details of [
    wrapped("null"),
    "No connection established",
    "Name resolution failed for target dns:x",
  ]) {
    assert.equal(wasNeverSent(details), true, details);
  }
  for (const details of [
    "Connection dropped",
    "Deadline exceeded",
    "Received RST_STREAM with code 2",
    "etcdserver: no leader",
  ]) {
    assert.equal(wasNeverSent(details), false, details);
  }
});
