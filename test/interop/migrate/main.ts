/** `./dev soak migrate`: a cluster of etcd goes to Quorate and back, under load. */
import { count, positive, readArguments } from "../../../scripts/dev/command-line.ts";
import { ClientLoad } from "./load.ts";
import { type Release, thereAndBack } from "./move.ts";

const { values } = readArguments(
  "./dev soak migrate [OPTIONS]: a cluster of etcd goes to Quorate and back, under load",
  {
    from: { choices: ["3.5", "3.6", "3.7"], default: "3.7", describe: "release of etcd" },
    rate: { type: "string", default: "1000", requiresArg: true, describe: "writes a second" },
    writers: { type: "string", default: "40", requiresArg: true, describe: "writes at a time" },
    rest: {
      type: "string",
      default: "10",
      requiresArg: true,
      describe: "seconds before, between and after the two moves",
    },
    tls: { type: "boolean", default: true, describe: "mutual TLS" },
    users: { type: "boolean", default: true, describe: "users and passwords" },
  },
);
const beginMs = performance.now();
const log = (line: string): void => {
  const seconds = ((performance.now() - beginMs) / 1000).toFixed(1);
  console.log(`${seconds.padStart(6)} s  ${line}`);
};
await thereAndBack(
  {
    release: values.from as Release,
    tls: values.tls,
    users: values.users,
    rehearsed: false,
    restSeconds: positive("rest", values.rest),
    log,
  },
  async (surroundings) => {
    const load = new ClientLoad({
      ...surroundings,
      rate: positive("rate", values.rate),
      writers: count("writers", values.writers),
      watches: 4,
      leases: 10,
    });
    await load.start();
    return [load];
  },
);
