/** The printer that --write-out names. */
import { Exit, ExitCode } from "../io.ts";
import type { Invocation } from "../program.ts";
import { paintFor } from "../terminal.ts";
import { FieldsPrinter } from "./fields.ts";
import { JsonPrinter } from "./json.ts";
import type { Printer } from "./printer.ts";
import { ProtobufPrinter } from "./protobuf.ts";
import { SimplePrinter } from "./simple.ts";
import { TablePrinter } from "./table.ts";

/** Throws Exit for an unknown name. */
export function printerOf({ flags, io }: Invocation): Printer {
  const isHex = flags.bool("hex");
  switch (flags.string("write-out")) {
    case "simple":
      // Who asks for the simple form by its name gets it on a terminal, too.
      return new SimplePrinter(
        io,
        isHex,
        flags.isSet("write-out")
          ? undefined
          : io.terminal && { paint: paintFor(io), columns: io.terminal.size().columns },
      );
    case "json":
      return new JsonPrinter(io, isHex);
    case "fields":
      return new FieldsPrinter(io, isHex);
    case "table":
      return new TablePrinter(io);
    case "protobuf":
      return new ProtobufPrinter(io);
    default:
      throw new Exit(ExitCode.badFeature, "unsupported output format");
  }
}
