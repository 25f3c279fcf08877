/**
 * Encryption at rest from an EncryptionConfiguration file (--encryption-provider-config). With
 * reloading, a changed file takes effect within seconds: reads and writes from then on use its
 * keys. A file that cannot be used changes nothing, and a warning is logged. A file that names a
 * new KMS plugin takes effect when the plugin is well.
 */
import type { Clock, Logger } from "@quorate/host";
import { FileSource } from "@quorate/host/node";
import type { ValueTransformer } from "@quorate/kube-storage";
import { identityTransformer } from "@quorate/kube-storage";
import { defined, toUtf8 } from "@quorate/proto";
import { ruleOf, rulesByResource } from "../../src/encryption/encrypted-resources.ts";
import {
  type EncryptionProvider,
  parseEncryptionConfig,
} from "../../src/encryption/encryption-config.ts";
import type { KmsConfig } from "../../src/encryption/kms-config.ts";
import {
  type PrefixedTransformer,
  prefixTransformers,
} from "../../src/encryption/prefix-transformers.ts";
import { ciphers } from "./ciphers.ts";
import { type KmsService, PluginClient, type PluginOptions } from "./kms-plugin-client.ts";
import { KmsProvider } from "./kms-provider.ts";

/** The transformers of all resources. */
export interface Encryption {
  /** Follows the file, where that is reloaded. */
  transformerFor(resource: { readonly group: string; readonly resource: string }): ValueTransformer;
  /** Why a KMS plugin is not well; undefined when all are. */
  problem(): string | undefined;
  /** Ends reloading, and the connections to KMS plugins. */
  close(): Promise<void>;
}

export interface EncryptionDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Connects to a KMS plugin; another one in tests. */
  readonly newKms?: (options: PluginOptions) => KmsService;
}

/** No file: values are stored as they are. */
const noMatch: Readonly<Record<"aesgcm" | "aescbc" | "secretbox", string>> = {
  aesgcm: "no matching key was found for the provided AES transformer",
  aescbc: "no matching key was found for the provided AES transformer",
  secretbox: "no matching key was found for the provided Secretbox transformer",
};

/** What a file holds. */
interface ParsedFile {
  /** By resource, as rules name it. */
  readonly transformers: ReadonlyMap<string, ValueTransformer>;
  readonly kms: readonly KmsProvider[];
}

function prefixed(
  provider: EncryptionProvider,
  newProvider: (config: KmsConfig) => KmsProvider,
): PrefixedTransformer {
  if (provider.cipher === "identity") return { prefix: "", transformer: identityTransformer };
  if (provider.cipher === "kms") {
    const { kms } = provider;
    return { prefix: `k8s:enc:kms:v2:${kms.name}:`, transformer: newProvider(kms) };
  }
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

/** Rejects with Error for a file that is not valid. Its KMS providers have been asked once. */
async function parseFile(bytes: Uint8Array, deps: EncryptionDeps): Promise<ParsedFile> {
  if (bytes.length === 0) throw new Error("encryption provider configuration file is empty");
  const { CORE_SCHEMA, load } = await import("js-yaml");
  const parse = (text: string): unknown => load(text, { schema: CORE_SCHEMA });
  const rules = rulesByResource(parseEncryptionConfig(parseYaml(parse, toUtf8(bytes))));
  const kms: KmsProvider[] = [];
  const newKms = deps.newKms ?? ((options: PluginOptions) => new PluginClient(options, deps.clock));
  const newProvider = (config: KmsConfig): KmsProvider => {
    const present = kms.find(({ name }) => name === config.name);
    if (present !== undefined) return present;
    const provider = new KmsProvider(config.name, newKms(config), deps);
    kms.push(provider);
    return provider;
  };
  const transformers = new Map(
    [...rules].map(([resource, providers]) => [
      resource,
      prefixTransformers(
        providers.map((one) => prefixed(one, newProvider)),
        "no matching prefix found",
      ),
    ]),
  );
  await Promise.all(kms.map((one) => one.start()));
  return { transformers, kms };
}

/** The parser's message would quote the file, which has keys. */
function parseYaml(parse: (text: string) => unknown, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    const { mark } = error as { mark?: { readonly line: number } };
    const where = mark === undefined ? "" : ` at line ${mark.line + 1}`;
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
          return await parseFile(defined(contents.get(path), "the content"), deps);
        } catch (error) {
          throw new Error(`error while parsing file ${path}: ${(error as Error).message}`);
        }
      },
    },
    deps,
  );
  if (!reloads) source.close();
  const files = new FilesInUse(source.current, deps.clock);
  source.onChange((file) => files.add(file));
  return {
    transformerFor: (resource) => ({
      toStorage: (key, value) => files.transformerOf(resource).toStorage(key, value),
      fromStorage: (key, value) => files.transformerOf(resource).fromStorage(key, value),
    }),
    problem: () => files.problem,
    close: async () => {
      source.close();
      files.close();
    },
  };
}

/** A call that began before a change may use the plugins of the old file for so long. */
const OLD_FILE_GRACE_MS = 10_000;

/** The file that is in force, and the latest one where its plugins are not well yet. */
class FilesInUse {
  readonly #clock: Clock;
  #inForce: ParsedFile;
  #next: ParsedFile | undefined;
  #isClosed = false;

  constructor(first: ParsedFile, clock: Clock) {
    this.#inForce = first;
    this.#clock = clock;
  }

  /** Puts a changed file into force when all its plugins are well. */
  add(file: ParsedFile): void {
    closeAll(this.#next);
    this.#next = file;
    void Promise.all(file.kms.map(({ firstHealthy }) => firstHealthy)).then(() => {
      if (this.#next !== file || this.#isClosed) return;
      const old = this.#inForce;
      this.#inForce = file;
      this.#next = undefined;
      this.#clock.after(OLD_FILE_GRACE_MS, () => closeAll(old));
    });
  }

  transformerOf(resource: { readonly group: string; readonly resource: string }): ValueTransformer {
    return ruleOf(this.#inForce.transformers, resource) ?? identityTransformer;
  }

  get problem(): string | undefined {
    const ill = this.#inForce.kms.filter(({ problem }) => problem !== undefined);
    if (ill.length === 0) return undefined;
    return ill.map(({ name, problem }) => `KMS provider ${name}: ${problem}`).join("; ");
  }

  close(): void {
    this.#isClosed = true;
    closeAll(this.#next);
    closeAll(this.#inForce);
  }
}

function closeAll(file: ParsedFile | undefined): void {
  for (const one of file?.kms ?? []) one.close();
}
