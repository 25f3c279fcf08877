import type { Command, CommandBody, Invocation } from "@quorate/cli";
import { boolFlag, Exit, ExitCode, intFlag } from "@quorate/cli";
import { formatDurationNs } from "@quorate/host";
import { AlarmType, errorNameOf } from "@quorate/proto";
import { asExit } from "../connect/failed-call.ts";
import { clientOf, endpointsOf, withClient } from "../connect/globals.ts";
import { logIn } from "../connect/login.ts";
import { printerOf } from "../printers/choose.ts";
import {
  type EndpointHealth,
  type EndpointResponse,
  hashForm,
  healthForm,
  statusForm,
} from "../printers/endpoint-forms.ts";

/**
 * The endpoints of --endpoints or --discovery-srv, or with --cluster the client URLs of all
 * members.
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

/**
 * The text of a failed call. For a timeout, prints the error of the last attempt to standard error.
 */
export function reason(error: unknown, invocation: Invocation): string {
  const exit = asExit(error, invocation.io);
  if (!(exit instanceof Exit)) throw exit;
  return exit.message;
}

const alarmNames: ReadonlyMap<number, string> = new Map([
  [AlarmType.NOSPACE, "NOSPACE"],
  [AlarmType.CORRUPT, "CORRUPT"],
]);

/** A member is healthy if a linearizable read through it succeeds and no alarm is raised. */
async function probe(endpoint: string, invocation: Invocation): Promise<EndpointHealth> {
  const { client, methods } = await clientOf(invocation, [endpoint]);
  const startNs = invocation.io.nowNs();
  let error = "";
  try {
    await client.get("health");
  } catch (failure) {
    // A permission that etcd refuses needed a linearizable read too, so the cluster works.
    if (errorNameOf((failure as Error).message) !== "PermissionDenied")
      error = reason(failure, invocation);
  }
  const took = formatDurationNs(invocation.io.nowNs() - startNs);
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
  short: "Checks that members respond and have a quorum",
  async run(invocation) {
    const printer = printerOf(invocation);
    const endpoints = await chosenEndpoints(invocation);
    const list = await Promise.all(endpoints.map((endpoint) => probe(endpoint, invocation)));
    printer.form(healthForm, list);
    if (list.some((one) => !one.health)) throw new Exit(ExitCode.error, "unhealthy cluster");
  },
};

/** Calls each endpoint in turn. Prints failures and returns the last one. */
async function callAll<T>(
  invocation: Invocation,
  what: string,
  call: (kit: Awaited<ReturnType<typeof clientOf>>, endpoint: string) => Promise<T>,
): Promise<{ responses: EndpointResponse<T>[]; failure: string | undefined }> {
  const responses: EndpointResponse<T>[] = [];
  let failure: string | undefined;
  for (const endpoint of await chosenEndpoints(invocation)) {
    const kit = await clientOf(invocation, [endpoint]);
    try {
      await logIn(kit.client, invocation.io, "refusal");
      responses.push({ endpoint, response: await call(kit, endpoint) });
    } catch (error) {
      if (error instanceof Exit) throw error;
      failure = reason(error, invocation);
      invocation.io.stderr(`Failed to get the ${what} of endpoint ${endpoint} (${failure})\n`);
    } finally {
      kit.client.close();
    }
  }
  return { responses, failure };
}

const statusCommand: Command = {
  use: "status",
  short: "Prints the state of members",
  long: `Prints the state of members.

In the simple format each line has endpoint, ID, version, storage version, store size, size in use,
percentage not in use, quota, is leader, is learner, raft term, raft index, raft applied index,
errors, downgrade target version, downgrade enabled.`,
  async run(invocation) {
    const printer = printerOf(invocation);
    const { responses, failure } = await callAll(invocation, "status", ({ client }, endpoint) =>
      client.status(endpoint),
    );
    printer.form(statusForm, responses);
    if (failure !== undefined) throw new Exit(ExitCode.error, "");
  },
};

const hashCommand: Command = {
  use: "hashkv",
  short: "Prints the hash of each member's history",
  flags: {
    rev: intFlag("newest revision to hash (0 for the latest)"),
  },
  async run(invocation) {
    const printer = printerOf(invocation);
    const revision = invocation.flags.int("rev");
    const { responses, failure } = await callAll(invocation, "hash", ({ client }, endpoint) =>
      client.hashKv(endpoint, revision),
    );
    printer.form(hashForm, responses);
    if (failure !== undefined) throw new Exit(ExitCode.error, failure);
  },
};

export const endpointCommand: CommandBody = {
  flags: {
    cluster: boolFlag("use the endpoints of all members of the cluster"),
  },
  inherits: true,
  commands: [hashCommand, healthCommand, statusCommand],
};
