/** Loads the engine of regular expressions where a schema needs it. */
import type { Schema } from "@quorate/kube-storage";
import { type RawSchema, someSchema } from "../definition/raw-schema.ts";
import { loadPatterns, type Patterns } from "../validation/patterns.ts";

/** Undefined where the schema has no pattern. */
export async function loadSchemaPatterns(
  schema: Schema | undefined,
): Promise<Patterns | undefined> {
  const has = someSchema(schema as RawSchema | undefined, (one) => (one.pattern ?? "") !== "");
  return has ? await loadPatterns() : undefined;
}
