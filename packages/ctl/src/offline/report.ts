/** Prints the result of an offline command, one set of named values, in the formats of etcdutl. */

import type { Invocation } from "@quorate/cli";
import { drawTable, Exit, ExitCode, goJson, type JsonValue } from "@quorate/cli";

/** A value with its JSON name and its heading. */
export interface ReportField {
  readonly json: string;
  readonly title: string;
  /** The name in the fields format, if it is not the title. */
  readonly field?: string;
  readonly value: string | number;
  /** The text in lines and tables, if it is not the value. */
  readonly shown?: string;
}

/** Throws Exit for an unknown output format, before any work is done. */
export function checkForm({ flags }: Invocation): void {
  const format = flags.string("write-out");
  if (["simple", "json", "fields", "table"].includes(format)) return;
  // etcdutl's words.
  const text = format === "protobuf" ? `${format} not supported as` : "unsupported";
  throw new Exit(ExitCode.badFeature, `${text} output format`);
}

/** Prints the values as --write-out says: a comma-separated line, JSON, one a line, or a table. */
export function printReport({ flags, io }: Invocation, fields: readonly ReportField[]): void {
  switch (flags.string("write-out")) {
    case "json":
      io.stdout(
        `${goJson(Object.fromEntries(fields.map(({ json, value }): [string, JsonValue] => [json, value])))}\n`,
      );
      break;
    case "fields":
      for (const { title, field, value } of fields)
        io.stdout(`"${field ?? title.charAt(0).toUpperCase() + title.slice(1)}" : ${value}\n`);
      break;
    case "table":
      io.stdout(
        drawTable({
          header: fields.map(({ title }) => title),
          rows: [fields.map(({ value, shown }) => shown ?? String(value))],
        }),
      );
      break;
    default:
      io.stdout(`${fields.map(({ value, shown }) => shown ?? value).join(", ")}\n`);
  }
}
