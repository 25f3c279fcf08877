import { AlarmType } from "@quorate/proto";
import { asExit, clientOf, endpointsOf, logIn, withClient } from "../globals.ts";
import { goDuration } from "../go-format.ts";
import { Exit, ExitCode } from "../io.ts";
import { printerOf } from "../printers/choose.ts";
import type { EndpointAnswer, EndpointHealth } from "../printers/printer.ts";
import type { Command, Invocation } from "../program.ts";

/**
 * The endpoints that are asked: those of --endpoints or --discovery-srv, or with --cluster the
 * client URLs of all members.
 */
export async function chosenEndpoints(invocation: Invocation): Promise<readonly string[]> {
  if (!invocation.flags.bool("cluster")) return endpointsOf(invocation);
  try {
    const { members } = await withClient(invocation, ({ client }) => client.memberList());
    return members.flatMap((member) => member.clientURLs);
  } catch (error) {
    if (error instanceof Exit)
      throw new Exit(
        error.code,
        `failed to fetch endpoints from etcd cluster member list: ${error.message}`,
      );
    throw error;
  }
}

/** Why a call failed, with what lies behind a deadline on standard error. */
export function reason(error: unknown, invocation: Invocation): string {
  const exit = asExit(error, invocation.io);
  if (!(exit instanceof Exit)) throw exit;
  return exit.message;
}

const alarmNames: ReadonlyMap<number, string> = new Map([
  [AlarmType.NOSPACE, "NOSPACE"],
  [AlarmType.CORRUPT, "CORRUPT"],
]);

/** Asks one member: it is healthy if a linearizable read gets through it and no alarm is raised. */
async function probe(endpoint: string, invocation: Invocation): Promise<EndpointHealth> {
  const { client, methods } = await clientOf(invocation, [endpoint]);
  const startNs = invocation.io.nowNs();
  let error = "";
  try {
    await client.get("health");
  } catch (failure) {
    // Whoever may not read the key has been told so by the cluster's agreement.
    if ((failure as { code?: string }).code !== "PermissionDenied")
      error = reason(failure, invocation);
  }
  const took = goDuration(invocation.io.nowNs() - startNs);
  if (error === "") {
    try {
      const { alarms } = await client.call(methods.alarm, {}, true);
      if (alarms.length > 0)
        error = `Active Alarm(s): ${alarms.map(({ alarm }) => `${alarmNames.get(alarm) ?? "UNKNOWN"} `).join("")}`;
    } catch {
      error = "Unable to fetch the alarm list";
    }
  }
  client.close();
  return { endpoint, health: error === "", took, error };
}

const healthCommand: Command = {
  use: "health",
  short: "Checks that members answer and agree",
  async run(invocation) {
    const printer = printerOf(invocation);
    const endpoints = await chosenEndpoints(invocation);
    const list = await Promise.all(endpoints.map((endpoint) => probe(endpoint, invocation)));
    printer.endpointHealth(list);
    if (list.some((one) => !one.health)) throw new Exit(ExitCode.error, "unhealthy cluster");
  },
};

/** Asks each endpoint in turn; failures are printed and the last one is given. */
async function askAll<T>(
  invocation: Invocation,
  what: string,
  ask: (kit: Awaited<ReturnType<typeof clientOf>>, endpoint: string) => Promise<T>,
): Promise<{ answers: EndpointAnswer<T>[]; failure: string | undefined }> {
  const answers: EndpointAnswer<T>[] = [];
  let failure: string | undefined;
  for (const endpoint of await chosenEndpoints(invocation)) {
    const kit = await clientOf(invocation, [endpoint]);
    try {
      await logIn(kit.client, invocation.io);
      answers.push({ endpoint, response: await ask(kit, endpoint) });
    } catch (error) {
      if (error instanceof Exit) throw error;
      failure = reason(error, invocation);
      invocation.io.stderr(`Failed to get the ${what} of endpoint ${endpoint} (${failure})\n`);
    } finally {
      kit.client.close();
    }
  }
  return { answers, failure };
}

const statusCommand: Command = {
  use: "status",
  short: "Prints the state of members",
  long: `Prints the state of members.

In the simple form each line has endpoint, ID, version, storage version, size of the store, size in use, percentage not in use, quota,
whether it leads, whether it is a learner, raft term, raft index, applied index, errors, downgrade target and whether one is under way.`,
  async run(invocation) {
    const printer = printerOf(invocation);
    const { answers, failure } = await askAll(invocation, "status", ({ client }, endpoint) =>
      client.status(endpoint),
    );
    printer.endpointStatus(answers);
    if (failure !== undefined) throw new Exit(ExitCode.error, "");
  },
};

const hashCommand: Command = {
  use: "hashkv",
  short: "Prints the hash of the history of members",
  flags: {
    rev: { kind: "int", defaultText: "0", doc: "revision up to which to hash (0 for now)" },
  },
  async run(invocation) {
    const printer = printerOf(invocation);
    const revision = invocation.flags.int("rev");
    const { answers, failure } = await askAll(invocation, "hash", ({ client }, endpoint) =>
      client.hashKv(endpoint, revision),
    );
    printer.endpointHashKv(answers);
    if (failure !== undefined) throw new Exit(ExitCode.error, failure);
  },
};

export const endpointCommand: Command = {
  use: "endpoint <subcommand>",
  short: "Commands about single members",
  flags: {
    cluster: { kind: "bool", defaultText: "false", doc: "ask every member of the cluster" },
  },
  inherits: true,
  commands: [hashCommand, healthCommand, statusCommand],
};
