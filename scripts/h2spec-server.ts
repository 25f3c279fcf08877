/**
 * What h2spec speaks to: the client port's engine with one small HTTP answer. Prints its plain and
 * its TLS port; runs until it is killed.
 */
import { silentLogger, wholeBody } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { EngineServer } from "@quorate/rpc/node";
import { makeAuthority, makeLocalCertificate } from "../test/support/certs.ts";

const host = "127.0.0.1";
const { certPem, keyPem } = makeLocalCertificate(makeAuthority(), "h2spec");
const server = new EngineServer(
  // h2spec opens as many streams as the server allows.
  {
    listen: [false, true].map((secure) => ({ host, port: 0, secure })),
    tls: { certPem, keyPem },
    maxConcurrentStreams: 100,
  },
  {
    services: { unary: new Map(), stream: new Map() },
    http: wholeBody(
      () => ({ status: 200, headers: { "content-type": "text/plain" }, body: "fine\n" }),
      1024 * 1024,
      () => {},
    ),
    clock: nodeClock,
    logger: silentLogger,
  },
);
const bound = await server.listen();
console.log(bound.map((address) => address.port).join(" "));
