/** The manual page of a program with commands, from its declarations. */
import {
  type CommandNode,
  commandNodes,
  type Flag,
  type Program,
  shownDefault,
  usageOf,
  variableOf,
} from "@quorate/cli";
import { ManPage } from "./roff.ts";

/** What the declarations do not say. */
export interface PageParts {
  readonly source: string;
  readonly description: string;
  readonly examples: readonly (readonly [what: string, command: string])[];
  readonly exitCodes: readonly (readonly [code: number, meaning: string])[];
  readonly seeAlso: string;
  /** The page's name and section; by default the program's name, and 1. */
  readonly page?: { readonly name: string; readonly section: number };
}

/** The page. */
export function programPage(program: Program, parts: PageParts): string {
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
  page.item(
    term,
    flag.kind === "bool" ? "" : ` ${flag.kind}`,
    flag.doc + (shown === undefined ? "" : ` (default ${shown})`),
  );
}

function sorted(flags: ReadonlyMap<string, Flag>): [string, Flag][] {
  return [...flags].sort(([a], [b]) => (a < b ? -1 : 1));
}
