/** Writes the pictures of docs/operate/console.md: the browser's test, which takes them. */
import { readArguments } from "../../../scripts/dev/command-line.ts";

readArguments("./dev docs console: the pictures of docs/operate/console.md", {});
process.env["QUORATE_WRITE_DOCS"] = "1";
await import("./console.test.ts");
