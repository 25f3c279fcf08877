import type { Command } from "@quorate/cli";
import { flagLines } from "@quorate/cli";

export const optionsCommand: Command = {
  use: "options",
  short: "Lists the global flags",
  run({ io, program }) {
    const lines = flagLines(new Map(Object.entries(program.globals)));
    io.stdout(
      `The following options can be passed to any command:\n\n${lines.map((line) => `${line}\n`).join("")}`,
    );
  },
};
