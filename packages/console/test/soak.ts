/** The browser's test over 1,000,000 keys, or as many as the first word says. */
process.env["QUORATE_CONSOLE_KEYS"] = process.argv[2] ?? "1000000";
await import("./console.test.ts");
