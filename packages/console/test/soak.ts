/** The browser's test over as many keys as --keys says. */
import { readArguments } from "../../../scripts/dev/command-line.ts";

const { values } = readArguments("./dev soak console: the console in a browser, over many keys", {
  keys: { type: "number", default: 1_000_000, describe: "keys in the store" },
});
process.env["QUORATE_CONSOLE_KEYS"] = String(values.keys);
await import("./console.test.ts");
