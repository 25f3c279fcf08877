import type { Command } from "../command.ts";

const load = () => import("../dump/db.ts");

const what = `The path is a data directory of Quorate or etcd, a store's own folder, or a database or snapshot file of etcd's. The member
must be stopped.`;

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
    limit: { kind: "int", defaultText: "0", doc: "most records to print (0 for all)" },
    decode: {
      kind: "bool",
      defaultText: "false",
      doc: "print what the records say, where their bucket is known",
    },
  },
  run: async (invocation) => (await load()).iterateBucket(invocation),
};

const scanCommand: Command = {
  use: "scan-keys <path> <start revision>",
  short: "Prints every record of the keys' history from a revision on",
  long: `Prints every record of the keys' history from a revision on. In a file of etcd's all leaf pages are read, also those that were
given up, and what cannot be read is passed over: that finds what is left in a damaged file.

${what}`,
  run: async (invocation) => (await load()).scanKeys(invocation),
};

const hashCommand: Command = {
  use: "hash <path>",
  short: "Prints the hash of a whole store",
  long: `Prints the hash of a whole store: of all buckets, but for the index, the term and the version in "meta". It differs between a
member of Quorate and one of etcd with the same keys, since "meta" and "cluster" do; compare their keys by "hashkv".

${what}`,
  run: async (invocation) => (await load()).hashBuckets(invocation),
};

export const dumpDbCommand: Command = {
  use: "dump-db <subcommand>",
  short: "Prints what stands in a store or a snapshot file",
  long: "Prints what stands in a store or a snapshot file, as etcd-dump-db does. It changes nothing.",
  flags: {
    timeout: {
      kind: "duration",
      defaultText: "10s",
      doc: "how long to wait for a store that a running member holds",
    },
  },
  inherits: true,
  commands: [hashCommand, iterateCommand, listCommand, scanCommand],
};
