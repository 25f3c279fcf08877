/** --help and the tables of docs/reference/configuration.md, made from the declarations. */
import { gates, stageGates } from "@quorate/member";
import type { Stage, ValueKind } from "./option.ts";
import { type Group, groups, type NamedOption, options, variableName } from "./options.ts";
import { flagsOfGates, retiredFlags } from "./retired.ts";

const WIDTH = 100;

/** Breaks `text` at spaces into lines of at most `WIDTH` characters, each after `indent`. */
function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(indent + line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  lines.push(indent + line);
  return lines;
}

const stageNotes: Readonly<Record<Stage["kind"], string>> = {
  effective: "",
  pointless: "No effect",
  refused: "Refused",
};

function stageNote(stage: Stage): string {
  return stage.kind === "effective" ? "" : ` ${stageNotes[stage.kind]}: ${stage.why}.`;
}

function defaultNote(option: NamedOption): string {
  return (
    option.defaultDoc ??
    (option.defaultText === ""
      ? "none"
      : option.defaultText + (option.unit === undefined ? "" : ` ${option.unit}`))
  );
}

/** Gates of a stage first, as in etcd's --help. */
const allGates: readonly (readonly [name: string, spec: { stage: string; default: boolean }])[] = [
  ...[...stageGates].map(([name, stage]) => [name, { stage, default: false }] as const),
  ...gates,
];

/** An option as people read of it. */
export interface OptionDoc {
  readonly group: Group;
  readonly name: string;
  readonly kind: ValueKind;
  /** The default with its unit, or "none". */
  readonly defaultText: string;
  /** What it does, and how far it does so today. */
  readonly text: string;
  readonly variable: string;
  /** Its key in the config file, with a dot where it is nested. */
  readonly fileKey: string;
  /** The values of a text that has only some. */
  readonly allowed: readonly string[] | undefined;
}

/** Every option, group by group, in the order of --help. */
export function optionDocs(): OptionDoc[] {
  return groups.flatMap((group) =>
    [...options]
      .filter(([, option]) => option.group === group)
      .map(([name, option]) => ({
        group,
        name,
        kind: option.kind,
        defaultText: defaultNote(option),
        text: option.doc + stageNote(option.stage),
        variable: variableName(name),
        fileKey: option.fileKey,
        allowed: option.allowed,
      })),
  );
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

/** The text of --help. */
export function helpText(): string {
  const lines = [
    "quorate: one member of a clustered key-value store that speaks etcd's v3 protocol.",
    "",
    "Usage:",
    "  quorate [flags]             Start a member.",
    "  quorate --config-file FILE  Start a member from a YAML file; other flags and ETCD_* variables are then ignored.",
    "  quorate grpc-proxy start    Start a proxy that shares watches and keep-alive requests; it has a --help of its own.",
    "  quorate gateway start       Start a proxy of TCP connections; it has a --help of its own.",
    "  quorate apiserver           Start a Kubernetes API server; it has a --help of its own.",
    "  quorate --version           Print versions and exit.",
    "  quorate -h | --help         Print this text and exit.",
    "",
    "A flag is written --name value, --name=value or with a single dash. A bool is true when named alone; its value needs the = form.",
    "Each flag has an environment variable: --data-dir is ETCD_DATA_DIR. In the file its key is its name without dashes in front,",
    "TLS settings nested under client-transport-security and peer-transport-security. Durations are written 300ms, 5s, 1h30m.",
  ];
  const width =
    Math.max(...[...options].map(([name, option]) => name.length + option.kind.length)) + 3;
  for (const group of groups) {
    lines.push("", `${group}:`);
    for (const [name, option] of options) {
      if (option.group !== group) continue;
      lines.push(`  ${`--${name} ${option.kind}`.padEnd(width)}  default: ${defaultNote(option)}`);
      lines.push(...wrap(option.doc + stageNote(option.stage), "      "));
      if (name === "feature-gates") {
        for (const [gate, spec] of allGates)
          lines.push(`        ${gate}=true|false (${spec.stage} - default=${spec.default})`);
      }
    }
  }
  lines.push("", "Without effect, accepted so that old command lines still start a member:");
  for (const [name, { why, bool }] of retiredFlags) {
    lines.push(`  --${name}${bool ? " bool" : ""}`, ...wrap(sentence(why), "      "));
  }
  lines.push(
    "",
    "An unsafe feature may break what the store promises. Know why before using one.",
    "",
  );
  return lines.join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

/** The whole of docs/reference/configuration.md. */
export function configurationDocs(): string {
  const lines = [
    "# Configuration",
    "",
    "Generated from packages/server/src/config by `scripts/gen-config-docs.ts`; do not edit.",
    "",
    "A member reads its configuration from flags and `ETCD_*` variables, or from one YAML file",
    "(`--config-file FILE` or `ETCD_CONFIG_FILE`) in etcd's form. With a file, all other flags and",
    "variables are ignored, and a warning lists them. Setting both a flag and its variable is an error.",
    "Durations are written `300ms`, `5s`, `1h30m`. In the file, a bare number is in nanoseconds, as in",
    "etcd's files.",
    "",
    "Unknown flags and unknown keys of the file are errors; the message suggests the nearest known name.",
    "Some options are accepted for compatibility with etcd:",
    "",
    "- *No effect*: a value other than the default is logged as a warning.",
    "- *Refused*: a value other than the default stops the start, because ignoring it would be",
    "  dangerous.",
  ];
  for (const group of groups) {
    lines.push(
      "",
      `## ${group}`,
      "",
      "| flag | type | default | description |",
      "|---|---|---|---|",
    );
    for (const [name, option] of options) {
      if (option.group !== group) continue;
      const notes: string[] = [];
      if (option.stage.kind !== "effective")
        notes.push(`*${stageNotes[option.stage.kind]}: ${option.stage.why}.*`);
      if (option.fileKey !== name) notes.push(`In the file: \`${option.fileKey}\`.`);
      if (option.aliases.length > 0)
        notes.push(`Old name: ${option.aliases.map((alias) => `\`${alias}\``).join(", ")}.`);
      const what = [option.doc, ...notes].join(" ");
      const defaultText =
        option.defaultText === "" && option.defaultDoc === undefined
          ? ""
          : `\`${defaultNote(option)}\``;
      lines.push(
        `| \`--${name}\`<br>\`${variableName(name)}\` | ${option.kind} | ${cell(defaultText)} | ${cell(what)} |`,
      );
    }
  }
  lines.push("", "## Feature gates", "", "| gate | stage | default | |", "|---|---|---|---|");
  for (const [name, stage] of stageGates)
    lines.push(`| \`${name}\` | ${stage} | false | All gates of the stage that are not named. |`);
  for (const [name, gate] of gates)
    lines.push(
      `| \`${name}\` | ${gate.stage} | ${gate.default} | ${gate.why === undefined ? "" : `*No effect: ${gate.why}.* `}|`,
    );
  lines.push(
    "",
    "Flags that became gates, still accepted with a warning:",
    "",
    "| flag | gate |",
    "|---|---|",
  );
  for (const [flag, gate] of flagsOfGates) lines.push(`| \`--${flag}\` | \`${gate}\` |`);
  lines.push(
    "",
    "## Retired flags",
    "",
    "Accepted with a warning, so that old command lines still start a member.",
    "",
    "| flag | why it has no effect |",
    "|---|---|",
  );
  for (const [flag, { why }] of retiredFlags) lines.push(`| \`--${flag}\` | ${cell(why)} |`);
  lines.push("");
  return lines.join("\n");
}
