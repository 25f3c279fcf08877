import type { CommandBody } from "@quorate/cli";
import { durationFlag, intFlag, textFlag } from "@quorate/cli";
import { memberTimeoutFlag, noColorFlag } from "../observe/flags.ts";

export const doctorCommand: CommandBody = {
  long: `Diagnoses a cluster: finds problems, with the next steps. Not in etcdctl; it changes nothing.

It examines every member of the cluster, even those that --endpoints does not name: whether it
responds, is connected, leads or follows, lags or runs another version; its alarms, quota, unused
space, open files and log disk latency; its clock compared to this machine's; the validity, names
and CA of the certificates on its ports, the validity of its CAs and revocation lists, and of --cert
and --cacert; whether quotas, election timeouts, limits and features agree. For the cluster: a stable
leader, an odd number of voters, no forgotten learner or member that never started. Members are
examined concurrently: one that is down costs --member-timeout, or twice that where --endpoints does
not name it.

Each finding has the observation, the expected state, the next step, and commands that can be run as
printed. The exit code is 0 without findings and 1 with findings. With -w json the result is one
object with "healthy", "members", "findings" ("run" has the commands) and "notes".

--restart-safe answers one question in place of that: whether the other members are a working
majority while this one restarts. The exit code is 0 for yes and 1 for no, which has the reasons. Ask
it before each member of an upgrade. With -w json the result has "member", "safe" and "reasons".`,
  flags: {
    "restart-safe": textFlag("say whether the member of this name or id can be restarted now"),
    "probe-dir": textFlag(
      "also measure the disk of this local directory, such as a data directory",
    ),
    "fsync-limit": durationFlag("highest accepted 99th percentile of log syncs", "100ms"),
    "clock-limit": durationFlag("largest accepted difference between clocks", "1s"),
    "certificate-days": intFlag("fewest days that certificates must remain valid", "30"),
    ...memberTimeoutFlag("2s"),
    ...noColorFlag,
  },
  async run(invocation) {
    const { runDoctor } = await import("../doctor/run.ts");
    await runDoctor(invocation);
  },
};
