/**
 * The choice of a key by the prefix of a stored value (apiserver:
 * pkg/storage/value/transformer.go). A value names its provider and key:
 *
 *     k8s:enc:aesgcm:v1:  key1:  nonce and ciphertext
 *
 * Providers nest: the outer prefix chooses the provider, the inner one its key. The first of a list
 * encrypts; all of them decrypt. What another than the first decrypted is stale, so that the next
 * update writes it with the first.
 */

import type { Untransformed, ValueTransformer } from "@quorate/kube-storage";
import { textOf } from "@quorate/kube-storage";
import { concat, defined, equals, fromUtf8 } from "@quorate/proto";

/** A transformer for values that begin with a prefix, which it does not see. */
export interface PrefixedTransformer {
  readonly prefix: string;
  readonly transformer: ValueTransformer;
}

function startsWith(value: Uint8Array, prefix: Uint8Array): boolean {
  return value.length >= prefix.length && equals(value.subarray(0, prefix.length), prefix);
}

/**
 * @param list at least one
 * @param noMatch the error's text for a value with none of the prefixes
 */
export function prefixTransformers(
  list: readonly PrefixedTransformer[],
  noMatch: string,
): ValueTransformer {
  const entries = list.map(({ prefix, transformer }) => ({
    prefix: fromUtf8(prefix),
    transformer,
  }));
  const first = defined(entries[0], "a transformer");
  return {
    async toStorage(key, value) {
      const transformed = await first.transformer.toStorage(key, value);
      return first.prefix.length === 0 ? transformed : concat([first.prefix, transformed]);
    },

    async fromStorage(key, value): Promise<Untransformed> {
      const errors: string[] = [];
      for (const { prefix, transformer } of entries) {
        if (!startsWith(value, prefix)) continue;
        try {
          const result = await transformer.fromStorage(key, value.subarray(prefix.length));
          return { value: result.value, stale: result.stale || transformer !== first.transformer };
        } catch (error) {
          // Two providers of one kind share a prefix, so the next may have the key.
          if (prefix.length > 0) errors.push(textOf(error));
        }
      }
      if (errors.length > 1) throw new Error(`[${[...new Set(errors)].join(", ")}]`);
      throw new Error(errors[0] ?? noMatch);
    },
  };
}
