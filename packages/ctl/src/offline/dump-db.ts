import type { Command, Flag } from "@quorate/cli";
import { durationFlag, intFlag, textFlag } from "@quorate/cli";

const load = () => import("../dump/db.ts");

const what = `The path is a data directory of Quorate or etcd, the directory of a store, or a database or snapshot file
of etcd. The member must be stopped.`;

const decodeFlag: Flag = textFlag(
  "decode the records of known buckets; k8s: also the values of Kubernetes, as YAML",
  "false",
  { bareText: "true", values: ["k8s"] },
);

const listCommand: Command = {
  use: "list-bucket <path>",
  short: "Prints the names of all buckets",
  long: `Prints the names of all buckets.\n\n${what}`,
  run: async (invocation) => (await load()).listBuckets(invocation),
};

const iterateCommand: Command = {
  use: "iterate-bucket <path> <bucket> [options]",
  short: "Prints the records of a bucket, the last first",
  long: `Prints the records of a bucket, the last first.\n\n${what}`,
  flags: {
    limit: intFlag("most records to print (0 for all)"),
    decode: decodeFlag,
  },
  run: async (invocation) => (await load()).iterateBucket(invocation),
};

const scanCommand: Command = {
  use: "scan-keys <path> <start revision>",
  short: "Prints every record of the keys' history from a revision on",
  long: `Prints every record of the keys' history from a revision on. In a file of etcd it reads all leaf
pages, also freed ones, and skips unreadable ones: that recovers what is left in a damaged file.

${what}`,
  flags: { decode: { ...decodeFlag, defaultText: "true" } },
  run: async (invocation) => (await load()).scanKeys(invocation),
};

const hashCommand: Command = {
  use: "hash <path>",
  short: "Prints the hash of a whole store",
  long: `Prints the hash of a whole store: of all buckets, without the index, term and version in "meta". A
member of Quorate and one of etcd with the same keys differ, since "meta" and "cluster" differ;
compare their keys with "hashkv".

${what}`,
  run: async (invocation) => (await load()).hashBuckets(invocation),
};

export const dumpDbCommand: Command = {
  use: "dump-db <subcommand>",
  short: "Prints the contents of a store or a snapshot file",
  long: "Prints the contents of a store or a snapshot file, as etcd-dump-db does. It changes nothing.",
  flags: {
    timeout: durationFlag("how long to wait for a store that a running member has locked", "10s"),
  },
  inherits: true,
  commands: [hashCommand, iterateCommand, listCommand, scanCommand],
};
