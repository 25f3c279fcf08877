/** `quorate operator`: keeps clusters on Kubernetes until a signal ends it. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import {
  boolFlag,
  durationFlag,
  Exit,
  type Flags,
  type FlagValues,
  type Invocation,
  type Program,
  textFlag,
} from "@quorate/cli";
import { type Logger, splitHostPort } from "@quorate/host";
import {
  createHttp1Server,
  type NodeLogger,
  nodeClock,
  nodeLogger,
  nodeRandom,
} from "@quorate/host/node";
import type { KubeAccess } from "@quorate/kube-storage";
import { MetricRegistry } from "@quorate/metrics";
import { newOperator } from "../src/assemble.ts";
import { OperatorMetrics } from "../src/base/metrics.ts";
import { definitions } from "../src/base/schemas.ts";
import { Election } from "../src/election.ts";
import type { Operator } from "../src/operator.ts";
import { nodeCertifier } from "./certifier.ts";
import { clientMembers } from "./client-members.ts";
import { kubeAccess } from "./kube-config.ts";
import { HttpKube } from "./kube-http.ts";

const FLAGS: Flags = {
  kubeconfig: textFlag(
    "file that says how to reach the API server (default: the pod's service account)",
  ),
  namespace: textFlag("the only namespace to work in"),
  "lease-namespace": textFlag(
    "namespace of the lease by which one of several operators works (default: the pod's)",
  ),
  "listen-metrics": textFlag("address for /metrics, /healthz and /readyz", "0.0.0.0:8080"),
  settle: durationFlag("how long changed secrets take to reach all members", "3m"),
  "log-level": textFlag("debug, info, warn or error", "info"),
  "print-definitions": boolFlag("print the CustomResourceDefinitions for kubectl apply, and end"),
};

/** The program as far as it is an operator. */
export const operatorProgram: Program = {
  name: "quorate",
  short: "An operator for Kubernetes. Without a command quorate runs a member.",
  groups: [
    {
      title: "Commands",
      commands: [
        {
          use: "operator",
          short: "run an operator for Kubernetes",
          long: "Keeps clusters, backups, restores and users that are objects of Kubernetes.",
          flags: FLAGS,
          run: runOperator,
        },
      ],
    },
  ],
  globals: {},
};

async function runOperator({ flags, io, args }: Invocation): Promise<void> {
  if (args.length > 0) throw new Exit(1, `operator takes no arguments, got ${args.join(" ")}`);
  if (flags.bool("print-definitions")) {
    const list = { apiVersion: "v1", kind: "List", items: definitions() };
    io.stdout(`${JSON.stringify(list, undefined, 2)}\n`);
    return;
  }
  let access: KubeAccess;
  try {
    access = kubeAccess(flags.string("kubeconfig"), io.env);
  } catch (error) {
    throw new Exit(1, (error as Error).message);
  }
  const level = flags.string("log-level");
  if (level !== "debug" && level !== "info" && level !== "warn" && level !== "error")
    throw new Exit(1, `--log-level is ${JSON.stringify(level)}: debug, info, warn or error`);
  const logger = nodeLogger({ level, outputs: ["stderr"], format: "auto" });
  try {
    await serve(access, flags, io, logger);
  } finally {
    logger.close();
  }
}

async function serve(
  access: KubeAccess,
  flags: FlagValues,
  io: Invocation["io"],
  logger: NodeLogger,
): Promise<void> {
  const kube = new HttpKube(access);
  const metrics = new OperatorMetrics();
  const stopped = Promise.withResolvers<string>();
  const deps = {
    kube,
    members: clientMembers,
    certifier: nodeCertifier,
    clock: nodeClock,
    random: nodeRandom(),
    logger,
    metrics,
  };
  const rules = { settleMs: flags.durationMs("settle") };
  let operator: Operator | undefined;
  const election = new Election(
    flags.string("lease-namespace") || access.namespace,
    `${hostname()}_${randomUUID()}`,
    () => {
      logger.info("this operator leads");
      metrics.leads.with("quorate-operator").value = 1;
      operator = newOperator(flags.string("namespace"), rules, deps);
      operator.start();
    },
    () => stopped.resolve("the lease was lost"),
    deps,
  );
  const closeMetrics = await listen(flags.string("listen-metrics"), metrics, logger);
  const forget = io.onStop((signal) => stopped.resolve(`received ${signal}`));
  election.start();
  logger.info("operator runs", { "api-server": access.url });
  const why = await stopped.promise;
  forget();
  logger.info("operator ends", { reason: why });
  await operator?.stop();
  await election.stop();
  closeMetrics();
  await kube.close();
  if (why === "the lease was lost") throw new Exit(1, why);
}

/** Serves metrics and health; returns what ends it. */
async function listen(
  address: string,
  metrics: OperatorMetrics,
  logger: Logger,
): Promise<() => void> {
  const { processMetrics, prometheusExposition } = await import("@quorate/metrics/node");
  const own = new MetricRegistry();
  const endMeasuring = processMetrics(own);
  const parts = [metrics.registry, own].map((registry) => prometheusExposition(registry));
  const server = createHttp1Server((incoming, response) => {
    incoming.resume();
    const respond = (status: number, type: string, text: string): void => {
      response.writeHead(status, { "content-type": type }).end(text);
    };
    if (incoming.url === "/healthz" || incoming.url === "/readyz") {
      respond(200, "text/plain; charset=utf-8", "ok");
      return;
    }
    if (incoming.url !== "/metrics") {
      respond(404, "text/plain; charset=utf-8", "not found\n");
      return;
    }
    Promise.all(parts.map((part) => part.text())).then(
      (texts) => respond(200, parts[0]!.contentType, texts.join("\n")),
      (error: unknown) => respond(500, "text/plain; charset=utf-8", String(error)),
    );
  });
  const place = splitHostPort(address);
  if (place === undefined)
    throw new Exit(1, `--listen-metrics is ${JSON.stringify(address)}: HOST:PORT`);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(place.port, place.host, resolve);
  });
  logger.info("metrics are served", { address });
  return () => {
    endMeasuring();
    server.close();
    server.closeAllConnections();
  };
}
