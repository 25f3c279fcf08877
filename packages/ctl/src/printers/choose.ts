/** Makes the printer that --write-out names. */

import type { Invocation } from "@quorate/cli";
import { Exit, ExitCode, paintFor } from "@quorate/cli";
import { type Format, Printer } from "./printer.ts";

const FORMATS: ReadonlySet<string> = new Set<Format>([
  "simple",
  "json",
  "fields",
  "table",
  "protobuf",
]);

/** @throws Exit for an unknown format */
export function printerOf(
  { flags, io }: Invocation,
  options: { readonly valueOnly: boolean } = { valueOnly: false },
): Printer {
  const format = flags.string("write-out");
  if (!isFormat(format)) throw new Exit(ExitCode.badFeature, "unsupported output format");
  // A simple format that was asked for by name stays comma-separated on a terminal too.
  const terminal = flags.isSet("write-out") ? undefined : io.terminal;
  return new Printer(
    {
      format,
      isHex: flags.bool("hex"),
      valueOnly: options.valueOnly,
      page: terminal && { paint: paintFor(io), columns: terminal.size().columns },
    },
    io,
  );
}

function isFormat(name: string): name is Format {
  return FORMATS.has(name);
}
