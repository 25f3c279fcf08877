/**
 * The tool behind scripts/certs.sh, and quorate-certs of a release: makes, checks and rotates a
 * directory of certificates.
 */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import {
  addClient,
  certificateFiles,
  certificateTrouble,
  clientNameTrouble,
  type LeafNames,
  leafNamesOf,
  localHosts,
  maxCommonNameChars,
  writeCertificates,
} from "../certs.ts";
import { directoryOwner, giveTo, type Owner, ownerOf } from "./owner.ts";
import { nextStep, type RotationStep, rotate } from "./rotate.ts";

/** In a release the program is a file of its name. */
const NAME =
  basename(process.argv[1] ?? "", ".mjs") === "quorate-certs"
    ? "quorate-certs"
    : "scripts/certs.sh";

const HELP = `usage: ${NAME} COMMAND --dir DIRECTORY [OPTIONS]

  create    creates a CA for server and client certificates, a CA for peer certificates, and one
            certificate of each kind
  client NAME
            adds a client certificate, clients/NAME.pem and clients/NAME-key.pem, also for a running
            cluster: copy ca.pem to all hosts; members read it again within 5 s
  check     checks the certificates; prints problems, and exits with 1 if there are any
  rotate    replaces all certificates and CAs of a running cluster, in three steps, those of added
            clients too; to withdraw an added client, delete its files and rotate

  --dir DIRECTORY   directory of the files: ca.pem, server.pem, server-key.pem, client.pem and
                    client-key.pem for clients; peer-ca.pem, peer.pem and peer-key.pem for members
  --hosts LIST      comma-separated names and addresses for the server and peer certificates
                    (default: localhost,127.0.0.1,::1; for rotate those of the old certificates)
  --client NAME     common name of the client certificate, which is its user's name (default: client;
                    for client its NAME, and "" for none, as grpc-proxy needs; for rotate the old one)
  --owner USER[:GROUP]
                    owner of the directory and its files: the user that the member runs as
                    (default: the caller; for rotate the directory's owner)
  --days N          check: minimum remaining validity in days (default: 30)
  --step STEP       rotate: run only the step trust, issue or drop; after each step copy the directory
                    to all hosts and wait
  --wait SECONDS    rotate: wait after each step until all processes have read the files again
                    (default: 15; members read them every 5 s)
  --help            print this text

List all names and addresses that clients and members connect to, including 127.0.0.1 for programs on
the host itself. The keys of the CAs are never written, so that nobody who reads the directory can make
certificates: each added client has a CA of its own, which is appended to ca.pem.
`;

/** A mistake on the command line. */
class UsageError extends Error {}

const COMMANDS = ["create", "client", "check", "rotate"] as const;
type Command = (typeof COMMANDS)[number];

interface Options {
  readonly command: Command;
  /** Of "client": the name of its files. */
  readonly name: string;
  readonly dir: string;
  readonly hosts: readonly string[] | undefined;
  readonly client: string | undefined;
  readonly owner: Owner | undefined;
  readonly days: number;
  readonly step: RotationStep | undefined;
  readonly waitMs: number;
}

function readOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      dir: { type: "string" },
      hosts: { type: "string" },
      client: { type: "string" },
      owner: { type: "string" },
      days: { type: "string", default: "30" },
      step: { type: "string" },
      wait: { type: "string", default: "15" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return undefined;
  const [word, name = ""] = positionals;
  const command = COMMANDS.find((one) => one === word);
  const words = command === "client" ? 2 : 1;
  if (command === undefined || positionals.length > words) {
    throw new UsageError(
      `the command is ${JSON.stringify(positionals.join(" "))}; ` +
        "it should be create, client NAME, check or rotate",
    );
  }
  const nameTrouble = command === "client" ? clientNameTrouble(name) : undefined;
  if (nameTrouble !== undefined) throw new UsageError(nameTrouble);
  if (values.dir === undefined)
    throw new UsageError("--dir is missing, the directory of the certificates");
  const { step } = values;
  if (step !== undefined && step !== "trust" && step !== "issue" && step !== "drop") {
    throw new UsageError(`--step is ${JSON.stringify(step)}; it should be trust, issue or drop`);
  }
  const number = (name: string, text: string): number => {
    if (!/^\d+(?:\.\d+)?$/.test(text))
      throw new UsageError(`--${name} is ${JSON.stringify(text)}; it should be a number`);
    return Number(text);
  };
  if (values.owner !== undefined && command === "check")
    throw new UsageError("--owner is for create, client and rotate");
  if (values.client !== undefined && values.client.length > maxCommonNameChars) {
    throw new UsageError(
      `--client has ${values.client.length} characters; a common name has at most ${maxCommonNameChars}`,
    );
  }
  if (values.hosts !== undefined && command === "client")
    throw new UsageError("--hosts is for create and rotate: a client that only calls has none");
  return {
    command,
    name,
    dir: values.dir,
    owner: values.owner === undefined ? undefined : ownerFrom(values.owner),
    hosts: values.hosts?.split(",").filter((host) => host !== ""),
    client: values.client,
    days: number("days", values.days),
    step,
    waitMs: number("wait", values.wait) * 1000,
  };
}

/** Before anything is made: what is half done would have to be taken away by hand. */
function ownerFrom(text: string): Owner {
  let owner: Owner;
  try {
    owner = ownerOf(text);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const self = process.getuid?.();
  if (self !== 0 && self !== owner.uid)
    throw new UsageError(
      `--owner ${text}: only root can give files to another user; run it with sudo`,
    );
  return owner;
}

/**
 * Warns where other users should read keys and cannot, before a member fails to start.
 */
function warnOfUnreadableKeys(dir: string, owner: Owner | undefined): void {
  if (owner === undefined && process.getuid?.() === 0) {
    console.log(
      `only root can read the keys in ${dir}: for a service that runs as another user, --owner USER ` +
        "(quorate for the units that come with it)",
    );
  }
}

async function check({ dir, days }: Options): Promise<number> {
  const trouble = certificateTrouble(dir, days);
  if (trouble !== undefined) console.log(trouble);
  return trouble === undefined ? 0 : 1;
}

async function create({ dir, hosts, client, owner }: Options): Promise<void> {
  const { ca } = certificateFiles(dir);
  if (existsSync(ca))
    throw new UsageError(
      `${ca} is there already; "rotate" exchanges the certificates of the directory`,
    );
  await writeCertificates(dir, { hosts: hosts ?? localHosts, client: client ?? "client" });
  if (owner !== undefined) giveTo(dir, owner);
  console.log(`made the certificates in ${dir}`);
  warnOfUnreadableKeys(dir, owner);
}

async function add({ dir, name, client, owner }: Options): Promise<void> {
  const trouble = certificateTrouble(dir, 0);
  if (trouble !== undefined && !trouble.includes("expires at")) throw new UsageError(trouble);
  const keeper = owner ?? directoryOwner(dir);
  const { cert } = await addClient(dir, { name, commonName: client ?? name });
  giveToKeeper(dir, keeper, owner !== undefined);
  console.log(`made ${cert} and its key; copy ${certificateFiles(dir).ca} to all hosts`);
}

/** What was made anew belongs to the user whose directory it is: who runs this may be root. */
function giveToKeeper(dir: string, keeper: Owner | undefined, isAsked: boolean): void {
  if (keeper !== undefined && process.getuid !== undefined && (isAsked || process.getuid() === 0))
    giveTo(dir, keeper);
}

const STEP_TEXTS = {
  trust: "trusts the old and the new authorities",
  issue: "has the new certificates",
  drop: "trusts the new authorities alone",
};

async function rotateAll({ dir, hosts, client, owner, step, waitMs }: Options): Promise<void> {
  const { ca, peerCa } = certificateFiles(dir);
  if (existsSync(ca) && !existsSync(peerCa)) {
    throw new UsageError(
      `${peerCa} is missing: the directory is of an earlier release, where one authority signed for clients and members. On every host, ` +
        "copy ca.pem to peer-ca.pem and name that with --peer-trusted-ca-file, then rotate: members get an authority of their own",
    );
  }
  const trouble = certificateTrouble(dir, 0);
  // Expired ones are the reason why; for a directory without some it is unknown what to create.
  if (trouble !== undefined && !trouble.includes("expires at")) throw new UsageError(trouble);
  const old = leafNamesOf(dir);
  const names: LeafNames = { ...old, hosts: hosts ?? old.hosts, client: client ?? old.client };
  const keeper = owner ?? directoryOwner(dir);
  for (;;) {
    const next = step ?? nextStep(dir);
    await rotate(dir, next, names);
    giveToKeeper(dir, keeper, owner !== undefined);
    console.log(`${next}: ${dir} ${STEP_TEXTS[next]}`);
    if (step !== undefined || next === "drop") return;
    console.log(`waiting ${waitMs / 1000} s until everybody has read it`);
    await delay(waitMs);
  }
}

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === undefined) {
      process.stdout.write(HELP);
      return 0;
    }
    return (await { create, client: add, check, rotate: rotateAll }[options.command](options)) ?? 0;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const isUsage = error instanceof UsageError || code?.startsWith("ERR_PARSE_ARGS") === true;
    console.error(isUsage ? `${message}\n${NAME} --help prints the usage.` : message);
    return isUsage ? 2 : 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
