/** Transformers without keys. Those with keys are in node/encryption/. */
import type { ValueTransformer } from "./codec.ts";

/** Values as they are. */
export const identityTransformer: ValueTransformer = {
  toStorage: (_key, value) => value,
  fromStorage: (_key, value) => ({ value, stale: false }),
};
