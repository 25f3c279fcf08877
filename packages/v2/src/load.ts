/** The API is loaded where it is on; every member needs the ends of directories (expiry.ts). */
import type { v2Routes } from "./routes.ts";

/** Resolves with what serves the API. */
export async function loadV2Routes(): Promise<typeof v2Routes> {
  return (await import("./routes.ts")).v2Routes;
}
