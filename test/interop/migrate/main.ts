/** `./dev soak migrate`: a cluster of etcd goes to Quorate and back, under load. */
import { count, positive, readArguments, valueOption } from "../../../scripts/dev/command-line.ts";
import { ClientLoad } from "./load.ts";
import { type MoveOptions, type Release, thereAndBack, timedLines, withMove } from "./move.ts";

const { values } = readArguments(
  "./dev soak migrate [OPTIONS]: a cluster of etcd goes to Quorate and back, under load",
  {
    from: {
      type: "string",
      choices: ["3.5", "3.6", "3.7"],
      default: "3.7",
      describe: "release of etcd",
    },
    rate: valueOption("writes a second", "1000"),
    writers: valueOption("writes at a time", "40"),
    rest: valueOption("seconds before, between and after the two moves", "10"),
    tls: { type: "boolean", default: true, describe: "mutual TLS" },
    users: { type: "boolean", default: true, describe: "users and passwords" },
  },
);
const options: MoveOptions = {
  release: values.from as Release,
  tls: values.tls,
  users: values.users,
  rehearsed: false,
  restSeconds: positive("rest", values.rest),
  log: timedLines(),
};
const amounts = {
  rate: positive("rate", values.rate),
  writers: count("writers", values.writers),
  watches: 4,
  leases: 10,
};
await withMove(options, async (moving, surroundings) => {
  const load = new ClientLoad({ ...surroundings, ...amounts });
  await load.start();
  await thereAndBack(options, moving, surroundings, [load]);
});
