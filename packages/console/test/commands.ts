/** The programs that the console adds to `./dev`. */
import type { PackageCommands } from "../../../scripts/dev/commands.ts";

export const commands: PackageCommands = {
  docs: {
    console: {
      about: "the pictures of docs/operate/console.md",
      file: "packages/console/test/pictures.ts",
    },
  },
  soak: {
    console: {
      about: "the console in a browser, over a million keys",
      file: "packages/console/test/soak.ts",
    },
  },
};
