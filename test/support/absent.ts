/** Paths at which nothing is, whatever is on the machine. */
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A path of its own at each call. */
export function absentPath(): string {
  return join(tmpdir(), `quorate-absent-${randomUUID()}`);
}
