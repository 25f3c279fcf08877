import type { CommandBody, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, Exit, ExitCode } from "@quorate/cli";
import { KeyValue } from "@quorate/proto";
import { withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";
import { rangeForm } from "../printers/kv-forms.ts";
import { getRecord } from "./get.ts";
import { holdUntil, withSession } from "./lock.ts";

/** As in etcd's Go client. */
const SESSION_SECONDS = 60;

async function observe(invocation: Invocation, name: string): Promise<void> {
  const { io } = invocation;
  const printer = printerOf(invocation);
  const stop = new AbortController();
  const { signal } = stop;
  const forget = io.onStop(() => stop.abort());
  try {
    await withClient(invocation, async ({ client, build }) => {
      for await (const { header, kv } of build.observeElection(client, name, { signal })) {
        printer.form(rangeForm, { header, kvs: [KeyValue.encode(kv)], more: false, count: 0 });
      }
    });
  } finally {
    forget();
  }
  if (!signal.aborted) throw new Exit(ExitCode.error, "elect: observer lost");
}

async function stand(invocation: Invocation, name: string, proposal: string): Promise<void> {
  const printer = printerOf(invocation);
  await withClient(invocation, (kit) =>
    withSession(kit, invocation.io, SESSION_SECONDS, async (session, stop) => {
      const options = { signal: stop };
      const leadership = await kit.build.campaign(kit.client, session, name, proposal, options);
      printer.form(rangeForm, await getRecord(kit.client, leadership.entry.key));
      await holdUntil(stop, session, "elect: session expired");
      await leadership.resign();
    }),
  );
}

export const electCommand: CommandBody = {
  long: `Campaigns with a proposal, prints key and proposal when elected, and leads until stopped (Ctrl-C,
SIGTERM).

With --listen and no proposal it prints the leader, and again after every change.`,
  flags: {
    listen: boolFlag("observe the leader", "false", { shorthand: "l" }),
  },
  async run(invocation) {
    const { args, flags } = invocation;
    const [name, proposal] = args;
    if (name === undefined || args.length > 2) {
      throw badArguments(
        "elect takes one election name argument and an optional proposal argument",
      );
    }
    const listens = flags.bool("listen");
    if (proposal === undefined && !listens)
      throw badArguments("no proposal argument but -l not set");
    if (proposal !== undefined && listens) throw badArguments("proposal given but -l is set");
    if (proposal === undefined) await observe(invocation, name);
    else await stand(invocation, name, proposal);
  },
};
