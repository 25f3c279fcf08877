/** Writes the pictures of docs/operate/console.md: the browser's test, which takes them. */
process.env["QUORATE_WRITE_DOCS"] = "1";
await import("./console.test.ts");
