/** Defaults of definitions (apiextensions-apiserver: pkg/apis/apiextensions/v1/defaults.go). */
import type { Crd, CrdConversion, CrdNames, CrdSpec } from "./types.ts";

const DEFAULT_PORT = 443;

/** The definition with its defaults; the same object where it has them. */
export function withDefaults(crd: Crd): Crd {
  const spec = specWithDefaults(crd.spec ?? {});
  let result: Crd = spec === crd.spec ? crd : { ...crd, spec };
  if ((crd.status?.storedVersions?.length ?? 0) === 0) {
    const storage = spec.versions?.find((version) => version.storage === true)?.name;
    if (storage !== undefined) {
      result = { ...result, status: { ...crd.status, storedVersions: [storage] } };
    }
  }
  return result;
}

function specWithDefaults(spec: CrdSpec): CrdSpec {
  const names = namesWithDefaults(spec.names ?? {});
  const conversion = conversionWithDefaults(spec.conversion);
  if (names === spec.names && conversion === spec.conversion) return spec;
  return { ...spec, names, conversion };
}

function namesWithDefaults(names: CrdNames): CrdNames {
  const { kind = "", singular = "", listKind = "" } = names;
  if (kind === "" || (singular !== "" && listKind !== "")) return names;
  return {
    ...names,
    singular: singular === "" ? kind.toLowerCase() : singular,
    listKind: listKind === "" ? `${kind}List` : listKind,
  };
}

function conversionWithDefaults(conversion: CrdConversion | undefined): CrdConversion {
  if (conversion === undefined || conversion === null) return { strategy: "None" };
  const config = conversion.webhook?.clientConfig;
  if (config?.service === undefined || config.service.port !== undefined) return conversion;
  const service = { ...config.service, port: DEFAULT_PORT };
  return {
    ...conversion,
    webhook: { ...conversion.webhook, clientConfig: { ...config, service } },
  };
}
