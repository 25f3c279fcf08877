/** The tool behind scripts/certs.sh, and quorate-certs of a release: makes, checks and rotates a folder of certificates. */
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { certificateFiles, certificateTrouble, type LeafNames, leafNamesOf, localHosts, writeCertificates } from "../certs.ts";
import { nextStep, type RotationStep, rotate } from "./rotate.ts";

const HELP = `use: certs COMMAND --dir FOLDER [OPTIONS]

  create    makes an authority for server and client certificates, one for peer certificates, and one certificate of each kind
  check     says what is wrong with the certificates, or nothing; the exit code is 1 then
  rotate    exchanges all of them, the authorities too, in three steps, while a cluster that reads them runs

  --dir FOLDER      where the files are: ca.pem, server.pem, server-key.pem, client.pem and client-key.pem for clients,
                    peer-ca.pem, peer.pem and peer-key.pem for members among themselves
  --hosts LIST      names and addresses, by commas, for the server and peer certificates
                    (default: ${localHosts.join(",")}; for rotate those of the old ones)
  --client NAME     the client certificate's common name, which is its user's name (default: client; for rotate the old one)
  --days N          check: how long they must be good for (default: 30)
  --step STEP       rotate: only this step of trust, issue and drop; copy the folder to all hosts after each, and wait
  --wait SECONDS    rotate: how long everybody has to read the files again after each step (default: 15; members do it every 5)
  --help            this text

The authorities' keys are never written: nobody can add a certificate to the folder, only replace all of them.
`;

/** A mistake on the command line. */
class UsageError extends Error {}

interface Options {
  readonly command: string;
  readonly dir: string;
  readonly hosts: readonly string[] | undefined;
  readonly client: string | undefined;
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
      days: { type: "string", default: "30" },
      step: { type: "string" },
      wait: { type: "string", default: "15" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return undefined;
  const [command] = positionals;
  if (command === undefined || positionals.length > 1 || !["create", "check", "rotate"].includes(command)) {
    throw new UsageError(`the command is ${JSON.stringify(positionals.join(" "))}; it should be create, check or rotate`);
  }
  if (values.dir === undefined) throw new UsageError("--dir is missing, the folder of the certificates");
  const { step } = values;
  if (step !== undefined && step !== "trust" && step !== "issue" && step !== "drop") {
    throw new UsageError(`--step is ${JSON.stringify(step)}; it should be trust, issue or drop`);
  }
  const number = (name: string, text: string): number => {
    if (!/^\d+(?:\.\d+)?$/.test(text)) throw new UsageError(`--${name} is ${JSON.stringify(text)}; it should be a number`);
    return Number(text);
  };
  return {
    command,
    dir: values.dir,
    hosts: values.hosts?.split(",").filter((host) => host !== ""),
    client: values.client,
    days: number("days", values.days),
    step,
    waitMs: number("wait", values.wait) * 1000,
  };
}

async function create({ dir, hosts, client }: Options): Promise<void> {
  const { ca } = certificateFiles(dir);
  if (existsSync(ca)) throw new UsageError(`${ca} is there already; "rotate" exchanges the certificates of the folder`);
  await writeCertificates(dir, { hosts: hosts ?? localHosts, client: client ?? "client" });
  console.log(`made the certificates in ${dir}`);
}

const TOLD = {
  trust: "trusts the old and the new authorities",
  issue: "has the new certificates",
  drop: "trusts the new authorities alone",
};

async function rotateAll({ dir, hosts, client, step, waitMs }: Options): Promise<void> {
  const { ca, peerCa } = certificateFiles(dir);
  if (existsSync(ca) && !existsSync(peerCa)) {
    throw new UsageError(
      `${peerCa} is missing: the folder is of an earlier release, where one authority signed for clients and members. On every host, copy ` +
        "ca.pem to peer-ca.pem and name that with --peer-trusted-ca-file, then rotate: members get an authority of their own",
    );
  }
  const trouble = certificateTrouble(dir, 0);
  // Expired ones are the reason why; a folder without some cannot be told what to make.
  if (trouble !== undefined && !trouble.includes("expires at")) throw new UsageError(trouble);
  const old = leafNamesOf(dir);
  const names: LeafNames = { hosts: hosts ?? old.hosts, client: client ?? old.client };
  for (;;) {
    const next = step ?? nextStep(dir);
    await rotate(dir, next, names);
    console.log(`${next}: ${dir} ${TOLD[next]}`);
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
    if (options.command === "check") {
      const trouble = certificateTrouble(options.dir, options.days);
      if (trouble !== undefined) console.log(trouble);
      return trouble === undefined ? 0 : 1;
    }
    await (options.command === "create" ? create : rotateAll)(options);
    return 0;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const isUsage = error instanceof UsageError || code?.startsWith("ERR_PARSE_ARGS") === true;
    console.error(isUsage ? `${message}\n--help tells more.` : message);
    return isUsage ? 2 : 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
