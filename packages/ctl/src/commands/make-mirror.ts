import { clientOf, destinationAccess, withClient } from "../globals.ts";
import { Exit, ExitCode, untilStopped } from "../io.ts";
import type { Command, Invocation } from "../program.ts";

/** How often the count of mirrored keys is printed. */
const COUNT_INTERVAL_MS = 30_000;

/** What takes the prefix's place at the destination. Throws Exit. */
function destPrefix({ flags }: Invocation): string {
  const given = flags.string("dest-prefix");
  if (!flags.bool("no-dest-prefix")) return given === "" ? flags.string("prefix") : given;
  if (given === "") return "";
  throw new Exit(
    ExitCode.badArguments,
    "`--dest-prefix` and `--no-dest-prefix` cannot be set at the same time, choose one",
  );
}

export const makeMirrorCommand: Command = {
  use: "make-mirror [options] <destination>",
  short: "Copies keys to another cluster and follows their changes",
  long: `Copies keys to another cluster and follows their changes, until it is stopped (Ctrl-C, SIGTERM). While one of the clusters is away
it says so, tries again, and goes on from the revision that it had; it ends where the source has compacted what it still needs.

The destination is an endpoint of the other cluster; the flags that begin with --dest say how to talk to it. Every half minute the number
of keys that were put and deleted there is printed. Keys that the destination has and this cluster has not are left alone.`,
  flags: {
    prefix: { kind: "string", defaultText: "", doc: "mirror the keys that begin with this" },
    rev: {
      kind: "int",
      defaultText: "0",
      doc: "follow changes from this revision on, without copying what was before (0 to copy first)",
    },
    "max-txn-ops": {
      kind: "int",
      defaultText: "128",
      doc: "most operations in one transaction at the destination",
    },
    "dest-prefix": {
      kind: "string",
      defaultText: "",
      doc: "what takes the prefix's place at the destination",
    },
    "no-dest-prefix": {
      kind: "bool",
      defaultText: "false",
      doc: "leave the prefix away at the destination",
    },
    "dest-cert": { kind: "string", defaultText: "", doc: "certificate to show to the destination" },
    "dest-key": { kind: "string", defaultText: "", doc: "private key of that certificate" },
    "dest-cacert": {
      kind: "string",
      defaultText: "",
      doc: "CA that the destination's certificates must come from",
    },
    "dest-insecure-transport": {
      kind: "bool",
      defaultText: "true",
      doc: "talk to the destination without TLS where neither it nor a certificate asks for it",
    },
    "dest-user": {
      kind: "string",
      defaultText: "",
      doc: "user at the destination as name[:password]",
    },
    "dest-password": { kind: "string", defaultText: "", doc: "password of that user" },
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    const [destination] = args;
    if (destination === undefined || args.length > 1)
      throw new Exit(ExitCode.badArguments, "make-mirror takes one destination argument");
    const maxTxnOps = flags.int("max-txn-ops");
    if (maxTxnOps < 1)
      throw new Exit(ExitCode.badArguments, `--max-txn-ops must be 1 at least, not ${maxTxnOps}`);
    const options = {
      prefix: flags.string("prefix"),
      destPrefix: destPrefix(invocation),
      revision: flags.int("rev"),
      maxTxnOps,
    };
    const [{ Mirror }, { breakTeller }] = await Promise.all([
      import("../mirror/mirror.ts"),
      import("../watching.ts"),
    ]);
    const { client: to } = await clientOf(invocation, [destination], {
      access: await destinationAccess(invocation),
    });
    const stop = new AbortController();
    try {
      await withClient(invocation, async ({ client: from }) => {
        const mirror = new Mirror(from, to, options, {
          watchBroke: breakTeller(io, "the watch goes on at the next endpoint that answers"),
          callFailed: breakTeller(io, "it is tried again until it answers"),
          wentOn: (endpoint) => io.stderr(`${endpoint}: the mirror goes on\n`),
        });
        const timer = setInterval(() => io.stdout(`${mirror.count}\n`), COUNT_INTERVAL_MS);
        await untilStopped(
          io,
          () => stop.abort(),
          () => mirror.run(stop.signal),
        ).finally(() => clearInterval(timer));
      });
    } finally {
      to.close();
    }
  },
};
