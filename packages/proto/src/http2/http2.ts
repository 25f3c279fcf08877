/** HTTP/2 as bytes: its numbers, its frames, and header blocks in their plainest form. */
export * from "./frames.ts";
export * from "./numbers.ts";
export * from "./plain-fields.ts";
