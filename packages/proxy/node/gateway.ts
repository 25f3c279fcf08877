/** `quorate gateway start` (etcd: etcdmain/gateway.go). */

import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { Exit, type Invocation } from "@quorate/cli";
import { splitHostPort } from "@quorate/host";
import { nodeClock, nodeLogger, nodeNames, nodeRandom } from "@quorate/host/node";
import { type GatewayEndpoint, Picker } from "../src/gateway/picker.ts";
import { discover } from "./discovery.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { untilStopped } from "./until-stopped.ts";

/** Runs the gateway until a signal ends it. Throws Exit. */
export async function startGateway({ flags, io }: Invocation): Promise<void> {
  const logger = nodeLogger({ level: "info", outputs: ["stderr"], format: "json" });
  logger.info("Running: ", { args: process.argv });
  const ca = flags.string("trusted-ca-file");
  // etcd prints these to standard output.
  const refuse = (text: string): Exit => {
    io.stdout(text);
    return new Exit(1, "");
  };
  const found = await discover(
    {
      domain: flags.string("discovery-srv"),
      serviceName: flags.string("discovery-srv-name"),
      isInsecure: flags.bool("insecure-discovery"),
      caPem: ca === "" ? undefined : readFileSync(ca, "utf8"),
    },
    nodeNames,
    logger,
  ).catch((error: Error) => {
    io.stderr(`${error.message}\n`);
    throw new Exit(1, "");
  });
  const endpoints: GatewayEndpoint[] =
    found.length > 0
      ? found.map(({ target }) => ({ priority: 0, weight: 0, ...target }))
      : flags.strings("endpoints").map((text) => {
          const parsed = splitHostPort(stripScheme(text));
          if (parsed === undefined)
            throw refuse(`error parsing endpoint ${JSON.stringify(stripScheme(text))}`);
          return { ...parsed, priority: 0, weight: 0 };
        });
  const listenAddress = flags.string("listen-addr");
  const listen = splitHostPort(listenAddress);
  if (listen === undefined) throw refuse(`failed to validate listen address: ${listenAddress}\n`);
  await refuseLoop(endpoints, listen, listenAddress, refuse);
  if (endpoints.length === 0) throw refuse("no endpoints found\n");
  const proxy = new TcpProxy(
    { ...listen, retryDelayMs: flags.durationMs("retry-delay") || DEFAULT_RETRY_MS },
    new Picker(endpoints, nodeRandom()),
    { clock: nodeClock, logger },
  );
  await proxy.listen().catch((error: Error) => {
    io.stderr(`${error.message}\n`);
    throw new Exit(1, "");
  });
  await untilStopped(io, logger);
  await proxy.close();
  logger.close();
}

/** As in etcd, where no delay was set. */
const DEFAULT_RETRY_MS = 300_000;

/** A gateway that connects to itself would fill itself with connections. */
async function refuseLoop(
  endpoints: readonly GatewayEndpoint[],
  listen: { readonly host: string; readonly port: number },
  listenAddress: string,
  refuse: (text: string) => Exit,
): Promise<void> {
  const own = await addressesOf(listen.host).catch(() => {
    throw refuse(`failed to resolve listen host: ${listen.host}\n`);
  });
  for (const { host, port } of endpoints) {
    const addresses = await addressesOf(host).catch(() => {
      throw refuse(`failed to resolve endpoint host: ${host}\n`);
    });
    const same = port === listen.port ? addresses.find((one) => own.includes(one)) : undefined;
    if (same !== undefined)
      throw refuse(
        `SRV or endpoint (${host}:${port}->${same}:${port}) should not resolve to the gateway listen addr (${listenAddress})\n`,
      );
  }
}

async function addressesOf(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** "host:port" of a URL; other texts as they are. */
function stripScheme(text: string): string {
  return /^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/([^/?#]+)/.exec(text)?.[1] ?? text;
}
