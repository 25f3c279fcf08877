/** Printing what an offline command found: one set of named values, in the forms of etcdutl. */
import { goJson, type JsonValue } from "../go-format.ts";
import { Exit, ExitCode } from "../io.ts";
import { drawTable } from "../printers/tables.ts";
import type { Invocation } from "../program.ts";

/** One value: its name in JSON, its heading in tables and fields, and what is shown. */
export interface ReportField {
  readonly json: string;
  readonly title: string;
  /** In the form "fields", where it is not the title. */
  readonly field?: string;
  readonly value: string | number;
  /** In lines and tables for people, where it is not the value. */
  readonly shown?: string;
}

/** Throws Exit for a form of output that does not exist, before any work is done. */
export function checkForm({ flags }: Invocation): void {
  if (!["simple", "json", "fields", "table"].includes(flags.string("write-out")))
    throw new Exit(ExitCode.badFeature, "unsupported output format");
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
        io.stdout(`"${field ?? title[0].toUpperCase() + title.slice(1)}" : ${value}\n`);
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
