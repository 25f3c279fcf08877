import type { Command, CommandBody, Invocation } from "@quorate/cli";
import {
  badArguments,
  boolFlag,
  Exit,
  ExitCode,
  parseBigInt64,
  toSafeNumber,
  untilStopped,
} from "@quorate/cli";
import { withClient } from "../connect/globals.ts";
import { onlyArgument } from "../connect/one-call.ts";
import { printerOf } from "../printers/choose.ts";
import { paddedHex } from "../printers/form.ts";
import {
  grantForm,
  keepAliveForm,
  leasesForm,
  revokeForm,
  timeToLiveForm,
} from "../printers/lease-forms.ts";

/** The only argument, an integer as Go parses it. Throws Exit. */
function onlyNumber(
  invocation: Invocation,
  base: 10 | 16,
  usage: string,
  describe: (reason: string) => string,
): bigint {
  const text = onlyArgument(invocation, usage);
  try {
    return parseBigInt64(text, base);
  } catch (error) {
    throw badArguments(describe((error as Error).message));
  }
}

function leaseId(invocation: Invocation, usage: string): bigint {
  return onlyNumber(
    invocation,
    16,
    usage,
    (reason) => `bad lease ID arg (${reason}), expecting ID in Hex`,
  );
}

const badConnection = (message: string): Exit => new Exit(ExitCode.badConnection, message);

const grantCommand: Command = {
  use: "grant <ttl>",
  short: "Grants a lease with a time to live in seconds",
  async run(invocation) {
    const ttl = onlyNumber(
      invocation,
      10,
      "lease grant command needs TTL argument",
      (reason) => `bad TTL (${reason})`,
    );
    const printer = printerOf(invocation);
    const answer = await withClient(
      invocation,
      ({ client }) => client.leases.grant(toSafeNumber(ttl)),
      (message) => new Exit(ExitCode.error, `failed to grant lease (${message})`),
    );
    printer.form(grantForm, answer);
  },
};

const revokeCommand: Command = {
  use: "revoke <leaseID>",
  short: "Revokes a lease and deletes its keys",
  async run(invocation) {
    const id = leaseId(invocation, "lease revoke command needs 1 argument");
    const printer = printerOf(invocation);
    const answer = await withClient(
      invocation,
      ({ client }) => client.leases.revoke(id),
      (message) => new Exit(ExitCode.error, `failed to revoke lease (${message})`),
    );
    printer.form(revokeForm(id), answer);
  },
};

const timeToLiveCommand: Command = {
  use: "timetolive <leaseID> [options]",
  short: "Prints the remaining time of a lease",
  flags: {
    keys: boolFlag("print the attached keys"),
  },
  async run(invocation) {
    const id = leaseId(invocation, "lease timetolive command needs lease ID as argument");
    const keys = invocation.flags.bool("keys");
    const printer = printerOf(invocation);
    const answer = await withClient(
      invocation,
      ({ client }) => client.leases.timeToLive(id, { keys }),
      badConnection,
    );
    printer.form(timeToLiveForm(keys), answer);
  },
};

const listCommand: Command = {
  use: "list",
  short: "Lists all leases",
  async run(invocation) {
    const printer = printerOf(invocation);
    printer.form(
      leasesForm,
      await withClient(invocation, ({ client }) => client.leases.list(), badConnection),
    );
  },
};

const keepAliveCommand: Command = {
  use: "keep-alive [options] <leaseID>",
  short: "Keeps a lease alive",
  long: "Keeps a lease alive until the program is stopped (Ctrl-C) or the lease ends.",
  flags: { once: boolFlag("renew the lease once and exit") },
  async run(invocation) {
    const { flags, io } = invocation;
    const id = leaseId(invocation, "lease keep-alive command needs lease ID as argument");
    const printer = printerOf(invocation);
    if (flags.bool("once")) {
      printer.form(
        keepAliveForm,
        await withClient(
          invocation,
          ({ client }) => client.leases.keepAliveOnce(id),
          badConnection,
        ),
      );
      return;
    }
    await withClient(invocation, async ({ client }) => {
      const keeper = client.leases.keepAlive(id, (answer) => printer.form(keepAliveForm, answer));
      const end = await untilStopped(
        io,
        () => keeper.stop(),
        () => keeper.ended,
      );
      if (end.kind === "unreachable") {
        const why =
          end.cause === undefined
            ? "no member responded"
            : `${end.cause.endpoint}: ${end.cause.message}`;
        io.stderr(`Warning: the lease could not be renewed in time: ${why}\n`);
      }
    });
    if (printer.format === "simple") io.stdout(`lease ${paddedHex(id)} expired or revoked.\n`);
  },
};

export const leaseCommand: CommandBody = {
  commands: [grantCommand, keepAliveCommand, listCommand, revokeCommand, timeToLiveCommand],
};
