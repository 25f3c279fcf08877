import type { CommandBody, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, intFlag, textFlag, untilStopped } from "@quorate/cli";
import { clientOf, destinationAccess, withClient } from "../connect/globals.ts";

/** Interval between reports of the number of mirrored keys. */
const COUNT_INTERVAL_MS = 30_000;

/** The prefix that replaces --prefix at the destination. Throws Exit. */
function destPrefix({ flags }: Invocation): string {
  const given = flags.string("dest-prefix");
  if (!flags.bool("no-dest-prefix")) return given === "" ? flags.string("prefix") : given;
  if (given === "") return "";
  throw badArguments(
    "`--dest-prefix` and `--no-dest-prefix` cannot be set at the same time, choose one",
  );
}

export const makeMirrorCommand: CommandBody = {
  long: `Copies keys to another cluster and follows their changes until stopped (Ctrl-C, SIGTERM).

While a cluster is unavailable it reports so, retries, and continues from its last revision; it ends
if the source has compacted changes that it still needs. The destination is an endpoint of the other
cluster; the --dest flags configure the connection. Every 30 seconds it prints the number of keys
put and deleted there. Keys that only the destination has are not changed.`,
  flags: {
    prefix: textFlag("prefix of the keys to mirror"),
    rev: intFlag("follow changes from this revision on, without a first copy (0 to copy first)"),
    "max-txn-ops": intFlag("most operations in one transaction at the destination", "128"),
    "dest-prefix": textFlag("prefix at the destination, instead of --prefix"),
    "no-dest-prefix": boolFlag("remove the prefix at the destination"),
    "dest-cert": textFlag("client certificate for the destination"),
    "dest-key": textFlag("private key of that certificate"),
    "dest-cacert": textFlag("CA that verifies the destination's certificates"),
    "dest-insecure-transport": boolFlag(
      "connect to the destination without TLS, unless a certificate or the endpoint's scheme selects it",
      "true",
    ),
    "dest-user": textFlag("user at the destination as name[:password]"),
    "dest-password": textFlag("password of that user"),
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    const [destination] = args;
    if (destination === undefined || args.length > 1)
      throw badArguments("make-mirror takes one destination argument");
    const maxTxnOps = flags.int("max-txn-ops");
    if (maxTxnOps < 1) throw badArguments(`--max-txn-ops must be 1 at least, not ${maxTxnOps}`);
    const options = {
      prefix: flags.string("prefix"),
      destPrefix: destPrefix(invocation),
      revision: flags.int("rev"),
      maxTxnOps,
    };
    const [{ Mirror }, { breakReporter }] = await Promise.all([
      import("../mirror/mirror.ts"),
      import("./watching.ts"),
    ]);
    const { client: to } = await clientOf(invocation, [destination], {
      access: await destinationAccess(invocation),
    });
    const stop = new AbortController();
    try {
      await withClient(invocation, async ({ client: from }) => {
        const mirror = new Mirror(from, to, options, {
          watchBroke: breakReporter(io, "the watch continues at the next endpoint that responds"),
          callFailed: breakReporter(io, "retrying until it responds"),
          wentOn: (endpoint) =>
            io.stderr(`${endpoint}: the mirror continues
`),
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
