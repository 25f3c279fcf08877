/**
 * A cluster with users, asked directly and through a real grpc-proxy: what doctor and top say to
 * who has not logged in, or asks a proxy; and whose failed logins members count together.
 */
import assert from "node:assert/strict";
import * as http2 from "node:http2";
import { connect as connectSocket } from "node:net";
import { type TestContext, test } from "node:test";
import { connect } from "@quorate/client";
import { AuthService } from "@quorate/proto";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { startGrpcProxy } from "../support/grpc-proxy.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

const PASSWORD = "root's password";
const TOO_MANY = "etcdserver: too many failed logins: try again later";
const WRONG = "etcdserver: authentication failed, invalid user ID or password";
/** What members allow an address at once. */
const ADDRESS_BURST = 100;

const startProxy = (t: TestContext, cluster: TestCluster): Promise<string> =>
  startGrpcProxy(
    t,
    cluster.members.map((member) => member.clientAddress),
  );

async function addRoot({ endpoints }: TestCluster): Promise<void> {
  const client = connect({ endpoints, timeoutMs: 60_000 });
  await client.auth.userAdd("root", PASSWORD);
  await client.auth.userGrantRole("root", "root");
  await client.auth.enable();
  await client.close();
}

test("doctor and top ask for --user where a cluster has users, and name a proxy among the endpoints", {
  timeout: 200_000,
}, async (t) => {
  await withCluster({ size: 3 }, async (cluster) => {
    await addRoot(cluster);
    const proxy = await startProxy(t, cluster);
    const slow = "--command-timeout=60s";
    const run = (endpoints: readonly string[], ...args: string[]) =>
      runQuoratectl(endpoints, [...args, slow, "--member-timeout=30s"]);
    const login = `--user=root:${PASSWORD}`;
    const passUser = /the cluster has users: pass --user NAME, and enter the password/;
    const isBlamed = /systemctl|no member responds|does not respond|no leader/;

    for (const endpoints of [cluster.endpoints, [proxy]]) {
      const doctor = await run(endpoints, "doctor");
      assert.equal(doctor.code, 1);
      assert.match(doctor.stdout, /responded and refused the request: .*user name is empty/);
      assert.match(doctor.stdout, passUser);
      assert.doesNotMatch(doctor.stdout, isBlamed);
      const top = await run(endpoints, "top", "--once");
      assert.equal(top.code, 1);
      assert.match(top.stderr, passUser);
      assert.doesNotMatch(top.stderr, isBlamed);
      assert.doesNotMatch(top.stdout, /no response|members respond/);
    }
    const wrong = await run(cluster.endpoints, "doctor", "--user=root:wrong");
    assert.match(wrong.stdout + wrong.stderr, /authentication failed/);
    assert.doesNotMatch(wrong.stdout + wrong.stderr, isBlamed);

    await until("with a login nothing is wrong", async () => {
      const { code, stdout } = await run(cluster.endpoints, "doctor", login);
      return code === 0 && stdout.includes("3 members");
    });
    const top = await run(cluster.endpoints, "top", "--once", login);
    assert.deepEqual([top.code, top.stderr], [0, ""]);
    assert.match(top.stdout, /^quoratectl top {2}3 members {2}m\d leads in term/);

    // Through the proxy no member is seen, so nothing is said of any.
    const through = await run([proxy], "doctor", login);
    assert.equal(through.code, 1);
    assert.ok(
      through.stdout.includes(`${proxy} is a grpc-proxy, which answers for one of the members`),
      through.stdout,
    );
    assert.doesNotMatch(through.stdout, /nothing is wrong|no leader/);
  });
});

/** Opens a connection from an address of this machine's. */
function session(t: TestContext, address: string, from: string): http2.ClientHttp2Session {
  const [host, port] = address.split(":");
  const made = http2.connect(`http://${address}`, {
    createConnection: () => connectSocket({ host, port: Number(port), localAddress: from }),
  });
  t.after(() => made.destroy());
  return made;
}

/** A login as frames on a socket. Returns the status's text, empty for one that succeeds. */
async function logIn(
  { request }: { request: http2.ClientHttp2Session },
  name: string,
  password: string,
  fields: http2.OutgoingHttpHeaders = {},
): Promise<string> {
  const { path, requestType } = AuthService.methods.Authenticate;
  const message = requestType.encode({ name, password });
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const stream = request.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...fields,
  });
  let text: string | undefined;
  const read = (headers: http2.IncomingHttpHeaders): void => {
    text ??= headers["grpc-message"] as string | undefined;
    if (headers["grpc-status"] === "0") text = "";
  };
  stream.on("response", read);
  stream.on("trailers", read);
  stream.end(Buffer.concat([prefix, message]));
  for await (const _chunk of stream);
  assert.notEqual(text, undefined, "there is a status");
  return decodeURIComponent(text!);
}

test("wrong passwords of one client of a trusted grpc-proxy hold up no other; the last address of several fields counts", {
  timeout: 200_000,
}, async (t) => {
  const flags = ["--trusted-proxies=127.0.0.1", "--bcrypt-cost=4"];
  await withCluster({ size: 1, flags }, async (cluster) => {
    await addRoot(cluster);
    const [{ clientAddress }] = cluster.members;
    const proxy = await startProxy(t, cluster);
    const guesser = { request: session(t, proxy, "127.0.0.2") };
    const texts = new Map<string, number>();
    for (let i = 0; i < 110; i++) {
      // A client's own words on where it comes from are not passed on.
      const text = await logIn(guesser, `user ${i}`, "wrong", {
        "x-forwarded-for": `192.0.2.${i}`,
      });
      texts.set(text, (texts.get(text) ?? 0) + 1);
    }
    // Some are allowed again meanwhile, as time goes by.
    assert.deepEqual([...texts.keys()], [WRONG, TOO_MANY]);
    assert.ok(texts.get(WRONG)! >= ADDRESS_BURST);
    const other = { request: session(t, proxy, "127.0.0.3") };
    assert.equal(await logIn(other, "root", PASSWORD), "");

    // Two fields of one call, as two proxies in a row may leave them.
    const edge = { request: session(t, clientAddress, "127.0.0.1") };
    const forwarded = (...addresses: string[]) => ({ "x-forwarded-for": addresses });
    for (let i = 0; i < ADDRESS_BURST + 30; i++)
      await logIn(edge, `user ${i}`, "wrong", forwarded(`192.0.2.${i}`, "198.51.100.7"));
    assert.equal(
      await logIn(edge, "root", "x", forwarded("198.51.100.8", "198.51.100.7")),
      TOO_MANY,
    );
    assert.equal(
      await logIn(edge, "root", PASSWORD, forwarded("198.51.100.7", "198.51.100.8")),
      "",
    );
  });
});

test("without --trusted-proxies the clients of a grpc-proxy are counted together", {
  timeout: 200_000,
}, async (t) => {
  await withCluster({ size: 1, flags: ["--bcrypt-cost=4"] }, async (cluster) => {
    await addRoot(cluster);
    const proxy = await startProxy(t, cluster);
    const guesser = { request: session(t, proxy, "127.0.0.2") };
    await until("the proxy's address is refused", async () =>
      (await logIn(guesser, "nobody else", "wrong")) === TOO_MANY
        ? true
        : (await Promise.all(
            Array.from({ length: 50 }, (_, i) => logIn(guesser, `user ${i}`, "wrong")),
          )) === undefined,
    );
    const other = { request: session(t, proxy, "127.0.0.3") };
    // Far fewer than would refuse an address of its own.
    const answers: string[] = [];
    for (let round = 0; round < 3 && !answers.includes(TOO_MANY); round++) {
      const tries = Array.from({ length: 20 }, (_, i) => logIn(other, `other ${i}`, "wrong"));
      answers.push(...(await Promise.all(tries)));
    }
    assert.ok(answers.includes(TOO_MANY), "which is why the flag is there");
  });
});
