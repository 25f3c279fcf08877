/**
 * Which servers the client trusts: the server's certificate must come from the CA and be valid for
 * the host, a name or an address.
 */
import assert from "node:assert/strict";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { after, test } from "node:test";
import { type ClientError, connect } from "@quorate/client";
import { GrpcCode } from "@quorate/proto";
import {
  makeAuthority,
  makeCertificate,
  makeLocalCertificate,
  type TestCertificate,
} from "../support/certs.ts";

const authority = makeAuthority();
const servers: Http2SecureServer[] = [];
after(() => {
  for (const server of servers) server.close();
});

/**
 * A server that answers every call with UNIMPLEMENTED: a client that gets that has passed the
 * handshake.
 */
async function serve(certificate: TestCertificate): Promise<number> {
  const server = createSecureServer({ cert: certificate.certPem, key: certificate.keyPem });
  server.on("stream", (stream: ServerHttp2Stream) =>
    stream.respond(
      {
        ":status": 200,
        "content-type": "application/grpc",
        "grpc-status": "12",
        "grpc-message": "reached",
      },
      { endStream: true },
    ),
  );
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

async function ask(
  endpoint: string,
  ca: string,
  insecureSkipVerify = false,
  timeoutMs = 60_000,
): Promise<ClientError> {
  const client = connect({ endpoints: [endpoint], tls: { ca, insecureSkipVerify }, timeoutMs });
  try {
    await client.get("a");
    return assert.fail("the server answered");
  } catch (error) {
    return error as ClientError;
  } finally {
    client.close();
  }
}

/** Why no connection came about: it is said at once, not at the deadline. */
async function refusal(endpoint: string): Promise<string> {
  // It would be reached after the test's own.
  const {
    message,
    grpcCode,
    endpoint: named,
  } = await ask(endpoint, authority.certPem, false, 10_000_000);
  assert.equal(grpcCode, GrpcCode.Unavailable, message);
  assert.equal(named, endpoint);
  assert.ok(message.startsWith(`TLS with ${endpoint}: `), message);
  return message;
}

const reached = { grpcCode: GrpcCode.Unimplemented, message: "reached" };
const shape = ({ grpcCode, message }: ClientError): object => ({ grpcCode, message });

test("a certificate for the address and the name is good for both", async () => {
  const port = await serve(makeLocalCertificate(authority, "server"));
  assert.deepEqual(shape(await ask(`https://127.0.0.1:${port}`, authority.certPem)), reached);
  assert.deepEqual(shape(await ask(`https://localhost:${port}`, authority.certPem)), reached);
});

test("a certificate for the name alone is not good for the address", async () => {
  const port = await serve(
    makeCertificate({ name: "server", issuer: authority, dnsNames: ["localhost"] }),
  );
  assert.deepEqual(shape(await ask(`https://localhost:${port}`, authority.certPem)), reached);
  assert.match(await refusal(`https://127.0.0.1:${port}`), /does not match certificate's altnames/);
});

test("a certificate for another name is not good for this one", async () => {
  const port = await serve(
    makeCertificate({
      name: "server",
      issuer: authority,
      dnsNames: ["elsewhere.example"],
      ipAddresses: ["127.0.0.1"],
    }),
  );
  assert.match(await refusal(`https://localhost:${port}`), /does not match certificate's altnames/);
});

test("a certificate of another CA is refused, unless checks are turned off", async () => {
  const port = await serve(makeLocalCertificate(makeAuthority("other"), "server"));
  assert.match(
    await refusal(`https://127.0.0.1:${port}`),
    /unable to verify|self-signed|local issuer/,
  );
  assert.deepEqual(shape(await ask(`https://127.0.0.1:${port}`, authority.certPem, true)), reached);
});

test("certificates that cannot be read are refused when connecting", () => {
  assert.throws(() => connect({ endpoints: ["https://h:1"], tls: { cert: "junk", key: "junk" } }));
});

test("a closed client leaves no handshake open with a server that never answers", {
  timeout: 60_000,
}, async () => {
  const ends: Promise<unknown>[] = [];
  const server = createServer((socket: Socket) => {
    socket.on("error", () => {});
    socket.resume();
    ends.push(new Promise((resolve) => socket.once("close", resolve)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { grpcCode } = await ask(`https://127.0.0.1:${port}`, authority.certPem, false, 600);
  assert.equal(grpcCode, GrpcCode.DeadlineExceeded);
  assert.ok(ends.length > 0);
  await Promise.all(ends);
  server.close();
});
