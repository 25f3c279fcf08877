/**
 * The manual pages that come with a release, by file name: quorate(8), quorate-proxy(8),
 * quoratectl(1), quorateutl(1).
 */
import {
  type CommandNode,
  commandNodes,
  type Flag,
  loadProgram,
  type Program,
  shownDefault,
  shownKind,
  usageOf,
  variableOf,
} from "@quorate/cli";
import { quoratectl, quorateutl } from "@quorate/ctl";
import { QUORATE_VERSION } from "@quorate/member";
import { proxyProgram } from "@quorate/quorate/node";
import { optionDocs } from "@quorate/server";
import { ManPage } from "./roff.ts";

const source = `Quorate ${QUORATE_VERSION}`;

/** All pages. */
export async function manPages(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ["quorate.8", quoratePage()],
    ["quorate-proxy.8", proxyPage()],
    ["quoratectl.1", quoratectlPage(await loadProgram(quoratectl))],
    ["quorateutl.1", quorateutlPage()],
  ]);
}

function quoratectlPage(program: Program): string {
  return programPage(program, {
    source,
    description: `quoratectl reads and changes the keys of a running cluster of Quorate or etcd members, and looks after the cluster
itself. Its commands, options and output are those of etcdctl; what it has beyond them is said to be so.

Several endpoints are separated by commas. They are tried in turn, and a call that only reads is repeated at the next one when a member
does not answer.`,
    examples: [
      [
        "Write a key and read all that begin with a prefix:",
        "quoratectl put /app/colour blue; quoratectl get --prefix /app/",
      ],
      [
        "How the members stand, in a table:",
        "quoratectl --endpoints=https://10.0.0.4:2379 endpoint status --cluster -w table",
      ],
      [
        "Save a snapshot of one member:",
        "quoratectl --endpoints=https://10.0.0.4:2379 snapshot save backup.db",
      ],
    ],
    exitCodes: [
      [0, "The command has done what it was asked."],
      [1, "It has not: the cluster refused, did not answer, or is not as it should be."],
      [2, "No connection could be made."],
      [3, "The input is wrong."],
      [4, "The command or the form of output does not have what was asked for."],
      [128, "The arguments are wrong."],
      [130, "A snapshot could not be saved."],
    ],
    seeAlso: "quorateutl(1), quorate(8), etcdctl(1)",
  });
}

function quorateutlPage(): string {
  return programPage(quorateutl, {
    source,
    description: `quorateutl looks after the files of a member that does not run: its data directory, its write-ahead log, its store,
snapshots and backups. It makes no connections. It never writes to what it was asked to look at.

Where a file is damaged, the message names the file, the place in it and the command to run next.`,
    examples: [
      [
        "What is in a snapshot, read from end to end:",
        "quorateutl snapshot status backup.db -w table",
      ],
      [
        "A member's data directory from a snapshot:",
        "quorateutl snapshot restore backup.db --data-dir /var/lib/quorate",
      ],
      [
        "Look for damage in the log of a member that does not start:",
        "quorateutl wal verify /var/lib/quorate",
      ],
    ],
    exitCodes: [
      [0, "The command has done what it was asked, and found nothing damaged."],
      [1, "It has not, or a file is damaged."],
      [128, "The arguments are wrong."],
    ],
    seeAlso: "quoratectl(1), quorate(8), etcdutl(1)",
  });
}

function proxyPage(): string {
  return programPage(proxyProgram, {
    source,
    page: { name: "quorate-proxy", section: 8 },
    description: `quorate grpc-proxy serves etcd's API for a cluster behind it: watches of the same range share one watch of the
cluster, and serializable reads come from a cache. quorate gateway forwards TCP connections to the members that can be reached. Their
options are those of etcd.`,
    examples: [
      [
        "A proxy that registers itself for other clients:",
        "quorate grpc-proxy start --endpoints 10.0.0.4:2379,10.0.0.5:2379 --listen-addr 10.0.0.9:23790 " +
          "--advertise-client-url 10.0.0.9:23790 --resolver-prefix /proxies --resolver-ttl 30",
      ],
      [
        "A gateway to the members that SRV records name:",
        "quorate gateway start --discovery-srv example.org --listen-addr 127.0.0.1:2379",
      ],
    ],
    exitCodes: [
      [0, "It was asked to end."],
      [1, "It could not start; the message says why."],
    ],
    seeAlso: "quorate(8), quoratectl(1)",
  });
}

function quoratePage(): string {
  const page = new ManPage("quorate", 8, source, "Quorate");
  page.name("quorate", "one member of a clustered key-value store that speaks etcd's v3 protocol");
  page.section("Synopsis");
  page.usage("quorate [options]");
  page.usage("quorate --config-file FILE");
  page.usage("quorate gateway | grpc-proxy start [options]");
  page.usage("quorate --version | --help");
  page.section("Description");
  page.text(`quorate is one member of a cluster. It takes the options, variables and configuration file of etcd, and serves etcd's clients.

An option is written --name value, --name=value or with one dash. A yes-or-no option is yes when named alone; its value needs the = form.
Durations are written 300ms, 5s, 1h30m. An unknown option is refused, with the nearest known name.`);
  page.section("Options");
  page.item(
    "--config-file",
    " FILE",
    "Read the options from a YAML file in etcd's form; all other options and variables are then ignored.",
  );
  page.item("--version", "", "Print versions and end.");
  page.item("-h, --help", "", "Print all options and end.");
  let group = "";
  for (const option of optionDocs()) {
    if (option.group !== group) {
      group = option.group;
      page.subsection(group);
    }
    const note = option.defaultText === "none" ? "" : ` Default: ${option.defaultText}.`;
    page.item(
      `--${option.name}`,
      option.kind === "bool" ? "" : ` ${option.kind}`,
      option.text + note,
    );
  }
  page.section("Environment");
  page.text("Each option can be given by a variable too. A variable beside its option is refused.");
  for (const { name, variable } of optionDocs()) page.item(variable, "", `stands for --${name}`);
  page.section("Signals");
  page.item(
    "SIGTERM, SIGINT",
    "",
    "Hand leadership over, let calls end, write what is in memory, and end.",
  );
  page.item(
    "SIGHUP",
    "",
    "Read certificates and the log level of the configuration file again, and reopen log files.",
  );
  page.section("Exit status");
  page.item("0", "", "It was asked to end, or has been removed from the cluster.");
  page.item(
    "other",
    "",
    "It could not start, or found its own state damaged and stopped; its last log line says why and what to do next.",
  );
  page.section("Files");
  page.item("NAME.quorate", "", "The data directory, where --data-dir names no other.");
  page.section("See also");
  page.text("quorate-proxy(8), quoratectl(1), quorateutl(1), etcd(1)");
  return page.toString();
}

/** What the declarations do not say. */
interface PageParts {
  readonly source: string;
  readonly description: string;
  readonly examples: readonly (readonly [what: string, command: string])[];
  readonly exitCodes: readonly (readonly [code: number, meaning: string])[];
  readonly seeAlso: string;
  /** The page's name and section; by default the program's name, and 1. */
  readonly page?: { readonly name: string; readonly section: number };
}

/** The page. */
function programPage(program: Program, parts: PageParts): string {
  const { name: title, section } = parts.page ?? { name: program.name, section: 1 };
  const page = new ManPage(title, section, parts.source, "Quorate");
  page.name(title, program.short.replace(/^\w+: /, "").replace(/\.$/, ""));
  page.section("Synopsis");
  page.usage(`${program.name} [global options] command [options] [arguments]`);
  page.section("Description");
  page.text(parts.description);
  const [root, ...nodes] = commandNodes(program);
  page.section("Commands");
  for (const group of program.groups) {
    for (const node of nodes.filter(({ path }) => group.commands.includes(path[0])))
      command(page, program, node);
  }
  page.section("Global options");
  page.text("Every command takes these, before it or behind it.");
  for (const [name, flag] of sorted(root.flags)) option(page, name, flag);
  if (program.envPrefix !== undefined) {
    page.section("Environment");
    page.text(
      `A global option can be given by a variable too, named ${program.envPrefix}_ and the option's name in capitals, with underscores ` +
        "for dashes. A variable beside its option is refused.",
    );
    for (const name of Object.keys(program.globals).sort())
      page.item(variableOf(program.envPrefix, name), "", `stands for --${name}`);
  }
  page.section("Exit status");
  for (const [code, meaning] of parts.exitCodes) page.item(String(code), "", meaning);
  page.section("Examples");
  for (const [what, line] of parts.examples) page.paragraph(`${what}\n  ${line}`);
  page.section("See also");
  page.text(parts.seeAlso);
  return page.toString();
}

function command(
  page: ManPage,
  program: Program,
  { path, names, commands, flags }: CommandNode,
): void {
  const self = path.at(-1)!;
  page.subsection([program.name, ...names].join(" "));
  page.usage(usageOf(program, path));
  page.paragraph((self.long ?? `${self.short}.`).trimEnd());
  if (commands.length > 0)
    page.paragraph(`Its commands: ${commands.map((one) => one.use.split(" ")[0]).join(", ")}.`);
  for (const [name, flag] of sorted(flags))
    if (!(name in program.globals) && name !== "help") option(page, name, flag);
}

function option(page: ManPage, name: string, flag: Flag): void {
  const shown = shownDefault(flag);
  const term = `${flag.shorthand === undefined ? "" : `-${flag.shorthand}, `}--${name}`;
  page.item(term, shownKind(flag), flag.doc + (shown === undefined ? "" : ` (default ${shown})`));
}

function sorted(flags: ReadonlyMap<string, Flag>): [string, Flag][] {
  return [...flags].sort(([a], [b]) => (a < b ? -1 : 1));
}
