import type { Command } from "../command.ts";
import { memberTimeoutFlag, noColorFlag } from "../observe/flags.ts";

export const doctorCommand: Command = {
  use: "doctor [options]",
  short: "Looks for what is wrong with a cluster, and says what to do",
  long: `Looks for what is wrong with a cluster, and says what to do. Beyond etcdctl's commands; it changes nothing.

Every member of the cluster is looked at, whatever part of them --endpoints names: whether it answers, is connected, leads or follows, is
behind or differs in version; its alarms, quota, wasted space, open files and the latency of its log's disk; its clock beside this
machine's; the dates, names and authority of the certificates that its ports show, the dates of the authorities and revocation lists that
it holds, and those of --cert and --cacert; whether quotas, election timeouts, limits and features are the same everywhere. Of the cluster:
that there is a leader, which does not change all the time, an odd number of voters, and no learner or member that was left behind. All
members are asked side by side: one that is down or hangs costs --member-timeout, or twice that where --endpoints does not name it.

Each finding has what was seen, what would be right, what to do next, and commands that can be run as they are printed, in the shell that
doctor was run in. Exit code 0 if nothing is wrong, 1 if something is. With -w json the answer is one object with "healthy", "members",
"findings" (of which "run" has the commands) and "notes".`,
  flags: {
    "probe-dir": {
      kind: "string",
      defaultText: "",
      doc: "measure the disk of this folder of this machine too (a data directory's disk)",
    },
    "fsync-limit": {
      kind: "duration",
      defaultText: "100ms",
      doc: "99% of the syncs of a log should take no longer",
    },
    "clock-limit": { kind: "duration", defaultText: "1s", doc: "clocks may differ by that much" },
    "certificate-days": {
      kind: "int",
      defaultText: "30",
      doc: "certificates should be valid for so many days more",
    },
    ...memberTimeoutFlag("2s"),
    ...noColorFlag,
  },
  async run(invocation) {
    const { runDoctor } = await import("../doctor/run.ts");
    await runDoctor(invocation);
  },
};
