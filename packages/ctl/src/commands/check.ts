import type { Command, CommandBody, Flags } from "@quorate/cli";
import { boolFlag, textFlag } from "@quorate/cli";
import { loadNames, perfModel, scaleModel } from "../check/models.ts";
import { asExit } from "../connect/failed-call.ts";

function flagsFor(prefix: string): Flags {
  return {
    load: textFlag("size of the load: s(mall), m(edium), l(arge) or xl (xLarge)", "s", {
      values: loadNames,
    }),
    prefix: textFlag("prefix of the keys that are written and deleted again", prefix),
    "auto-compact": boolFlag("compact the history of these keys afterwards"),
    "auto-defrag": boolFlag("defragment the members afterwards"),
  };
}

const perfCommand: Command = {
  use: "perf [options]",
  short: "Checks whether the cluster sustains a load for a minute",
  long: `Checks whether the cluster sustains a load for a minute: 150 (s), 1000 (m), 8000 (l) or
15000 (xl) writes of 1 KiB a second.

It passes with at least 90% of that rate, no write above 500 ms and a standard deviation of at most
100 ms; otherwise the exit code is 1.`,
  flags: flagsFor("/etcdctl-check-perf/"),
  async run(invocation) {
    const { flags, io } = invocation;
    const model = perfModel(flags.string("load"));
    const { checkPerf } = await import("../check/perf.ts");
    await checkPerf(invocation, flags.string("prefix"), model).catch((error) => {
      throw asExit(error, io);
    });
  },
};

const datascaleCommand: Command = {
  use: "datascale [options]",
  short: "Measures the memory that a member needs for a number of keys",
  long: `Measures the memory that the member of the first endpoint needs for 10,000 (s), 100,000 (m),
1,000,000 (l) or 3,000,000 (xl) keys of 1 KiB, which are deleted again.`,
  flags: flagsFor("/etcdctl-check-datascale/"),
  async run(invocation) {
    const { flags, io } = invocation;
    const model = scaleModel(flags.string("load"));
    const { checkDatascale } = await import("../check/datascale.ts");
    await checkDatascale(invocation, flags.string("prefix"), model).catch((error) => {
      throw asExit(error, io);
    });
  },
};

export const checkCommand: CommandBody = {
  commands: [datascaleCommand, perfCommand],
};
