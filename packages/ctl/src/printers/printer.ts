/** Prints responses in the format that --write-out names, as their Forms declare it. */

import { drawTable, Exit, ExitCode, goJson, type Paint, type Table } from "@quorate/cli";
import type { ResponseHeader } from "@quorate/proto";
import { type FieldLine, type Form, type FormStyle, headerFields } from "./form.ts";

export type Format = "simple" | "json" | "fields" | "table" | "protobuf";

/** The output streams. */
export interface Sink {
  stdout(content: string | Uint8Array): void;
  stderr(text: string): void;
}

/** A response with its header, or a list of responses. */
type Printable = { readonly header: ResponseHeader | undefined } | readonly unknown[];

export interface PrinterOptions {
  readonly format: Format;
  readonly isHex: boolean;
  readonly valueOnly?: boolean;
  /** The terminal on which the simple format aligns tables; absent in a pipe. */
  readonly page?: Page | undefined;
}

export class Printer {
  readonly format: Format;
  readonly #sink: Sink;
  readonly #style: FormStyle;
  readonly #page: Page | undefined;

  constructor({ format, isHex, valueOnly = false, page }: PrinterOptions, sink: Sink) {
    this.format = format;
    this.#style = { isHex, valueOnly };
    this.#page = page;
    this.#sink = sink;
  }

  /** Prints a response. Throws Exit where etcdctl does not have this format for it. */
  form<T extends Printable>(form: Form<T>, response: T): void {
    switch (this.format) {
      case "simple":
        this.#simple(form, response);
        break;
      case "json":
        this.#sink.stdout(`${goJson(form.json(response, this.#style))}\n`);
        break;
      case "fields":
        this.#fields(form, response);
        break;
      case "table":
        this.#sink.stdout(drawTable((form.table ?? this.#refuse()).call(form, response)));
        break;
      case "protobuf":
        this.#sink.stdout((form.protobuf ?? this.#refuse()).call(form, response));
        break;
    }
  }

  #simple<T>(form: Form<T>, response: T): void {
    if (form.simple === undefined) {
      this.#sink.stdout(this.#rows(form.table(response)));
      return;
    }
    const output = form.simple(response, this.#style);
    if (typeof output === "string" || output instanceof Uint8Array) {
      if (output.length > 0) this.#sink.stdout(output);
    } else {
      for (const { stream, text } of output) this.#sink[stream](text);
    }
  }

  #rows(table: Table): string {
    if (this.#page !== undefined) return layOut(table, this.#page);
    return table.rows.map((row) => `${row.join(", ")}\n`).join("");
  }

  #fields<T extends Printable>(form: Form<T>, response: T): void {
    const fields = form.fields ?? this.#refuse();
    const header = "header" in response ? headerFields(response.header, this.#style) : [];
    for (const line of [...header, ...fields.call(form, response, this.#style)]) {
      this.#sink.stdout(`${fieldText(line)}\n`);
    }
  }

  #refuse(): never {
    throw new Exit(ExitCode.badFeature, `${this.format} not supported as output format`);
  }
}

function fieldText(line: FieldLine): string {
  return typeof line === "string" ? line : `"${line[0]}" : ${line[1]}`;
}

/** Where a table is to be shown. */
interface Page {
  readonly paint: Paint;
  /** Its width in characters. */
  readonly columns: number;
}

const GAP = "  ";

/**
 * Tables for people at a terminal: aligned columns under a heading, or a block for each row where
 * the columns do not fit.
 *
 * The table as text. Columns whose cells are all empty are left out.
 */
export function layOut({ header, rows }: Table, { paint, columns }: Page): string {
  const shown = header
    .map((name, at) =>
      columnOf(
        name.replaceAll("_", " ").toUpperCase(),
        rows.map((row) => row[at] ?? ""),
      ),
    )
    .filter(({ cells }) => cells.length === 0 || cells.some((cell) => cell !== ""));
  const total = shown.reduce((sum, { width }) => sum + width + GAP.length, -GAP.length);
  if (total > columns && rows.length > 0)
    return rows.map((_, at) => block(shown, at, paint)).join("\n");
  const line = (textOf: (column: Column) => string): string =>
    shown
      .map((column) => textOf(column).padEnd(column.width))
      .join(GAP)
      .trimEnd();
  const titles = paint(
    line(({ title }) => title),
    "bold",
  );
  const lines = rows.map((_, at) => line(({ cells }) => cells[at] ?? ""));
  return [titles, ...lines].map((text) => `${text}\n`).join("");
}

interface Column {
  readonly title: string;
  /** By row. */
  readonly cells: readonly string[];
  readonly width: number;
}

function columnOf(title: string, cells: readonly string[]): Column {
  return { title, cells, width: Math.max(title.length, ...cells.map(({ length }) => length)) };
}

function block(columns: readonly Column[], at: number, paint: Paint): string {
  const width = Math.max(...columns.map(({ title }) => title.length));
  return columns
    .map(({ title, cells }) => `${paint(title.padEnd(width), "bold")}${GAP}${cells[at]}\n`)
    .join("");
}
