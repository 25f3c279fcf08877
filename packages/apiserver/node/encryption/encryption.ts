/**
 * Encryption at rest from an EncryptionConfiguration file (--encryption-provider-config). With
 * reloading, a changed file takes effect within seconds: reads and writes from then on use its
 * keys. A file that cannot be used changes nothing, and a warning is logged.
 */
import type { Clock, Logger } from "@quorate/host";
import { FileSource } from "@quorate/host/node";
import { toUtf8 } from "@quorate/proto";
import { ruleOf, rulesByResource } from "../../src/encryption/encrypted-resources.ts";
import {
  type EncryptionProvider,
  parseEncryptionConfig,
} from "../../src/encryption/encryption-config.ts";
import {
  identityTransformer,
  type PrefixedTransformer,
  prefixTransformers,
} from "../../src/encryption/prefix-transformers.ts";
import type { ValueTransformer } from "../../src/storage/codec.ts";
import { ciphers } from "./ciphers.ts";

/** The transformers of all resources. */
export interface Encryption {
  /** Follows the file, where that is reloaded. */
  transformerFor(resource: { readonly group: string; readonly resource: string }): ValueTransformer;
  /** Ends reloading. */
  close(): Promise<void>;
}

export interface EncryptionDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** No file: values are stored as they are. */
export const NO_ENCRYPTION: Encryption = {
  transformerFor: () => identityTransformer,
  close: async () => {},
};

const noMatch: Readonly<Record<"aesgcm" | "aescbc" | "secretbox", string>> = {
  aesgcm: "no matching key was found for the provided AES transformer",
  aescbc: "no matching key was found for the provided AES transformer",
  secretbox: "no matching key was found for the provided Secretbox transformer",
};

function prefixed(provider: EncryptionProvider): PrefixedTransformer {
  if (provider.cipher === "identity") return { prefix: "", transformer: identityTransformer };
  const { cipher, keys } = provider;
  const byKey = keys.map(({ name, secret }) => ({
    prefix: `${name}:`,
    transformer: ciphers[cipher](secret),
  }));
  return {
    prefix: `k8s:enc:${cipher}:v1:`,
    transformer: prefixTransformers(byKey, noMatch[cipher]),
  };
}

/** Transformers by resource, as rules name it. Throws Error for a file that is not valid. */
async function parseFile(bytes: Uint8Array): Promise<ReadonlyMap<string, ValueTransformer>> {
  if (bytes.length === 0) throw new Error("encryption provider configuration file is empty");
  const { parse } = await import("yaml");
  const rules = rulesByResource(parseEncryptionConfig(parseYaml(parse, toUtf8(bytes))));
  return new Map(
    [...rules].map(([resource, providers]) => [
      resource,
      prefixTransformers(providers.map(prefixed), "no matching prefix found"),
    ]),
  );
}

/** The parser's message would quote the file, which has keys. */
function parseYaml(parse: (text: string) => unknown, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    const { linePos } = error as { linePos?: readonly { readonly line: number }[] };
    const where = linePos === undefined ? "" : ` at line ${linePos[0].line}`;
    throw new Error(`the encryption provider configuration file is no YAML${where}`);
  }
}

/**
 * Reads the file. Rejects with Error that says what is wrong with it, without secrets.
 * @param reloads follow changes of the file (--encryption-provider-config-automatic-reload)
 */
export async function openEncryption(
  path: string,
  reloads: boolean,
  deps: EncryptionDeps,
): Promise<Encryption> {
  const source = await FileSource.open(
    {
      what: "encryption provider configuration",
      paths: [path],
      parse: async (contents) => {
        try {
          return await parseFile(contents.get(path)!);
        } catch (error) {
          throw new Error(`error while parsing file ${path}: ${(error as Error).message}`);
        }
      },
    },
    deps,
  );
  if (!reloads) source.close();
  const transformerOf = (resource: {
    readonly group: string;
    readonly resource: string;
  }): ValueTransformer => ruleOf(source.current, resource) ?? identityTransformer;
  return {
    transformerFor: (resource) => ({
      toStorage: (key, value) => transformerOf(resource).toStorage(key, value),
      fromStorage: (key, value) => transformerOf(resource).fromStorage(key, value),
    }),
    close: async () => source.close(),
  };
}
