/** Counts visits, for all programs together. */
import { addTo, type Client } from "@quorate/client";

/** Resolves with the number of this visit to a page. */
export function visit(client: Client, page: string): Promise<number> {
  return addTo(client, `visits/${page}`, 1);
}
