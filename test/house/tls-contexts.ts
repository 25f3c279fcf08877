/**
 * TLS contexts have one maker, tlsContext of the host: what opens TLS takes its options from that,
 * so that a certificate is trusted everywhere or nowhere.
 */
import { importsOfFile } from "./imports.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "./tree.ts";

/** The maker, and what wraps it. */
const MAKERS = /\b(?:tlsContext|serverTlsOptions|clientTlsOptions|followingTlsServer)\(/;
const MAKER_HOME = "packages/host/src/tls-context.ts";
/** Modules that make contexts of the options that they get. */
const OPENERS = new Set(["node:tls", "node:https", "undici"]);
/** What in node:tls makes none. */
const HARMLESS = /^import \{ (?:checkServerIdentity|type [\w, ]+)(?:, type [\w, ]+)? \} from/;

/** Files that open TLS with options that a caller hands them, and that caller. */
const HANDED: Readonly<Record<string, string>> = {
  "packages/rpc/node/client/channel.ts": "packages/client/node/connect.ts, proxy's upstream-tls.ts",
  "packages/proxy/node/http-endpoints.ts": "packages/proxy/node/upstream-tls.ts",
  "packages/transport/node/kept-connections.ts": "packages/transport/node/http1-request.ts",
};

/** Contexts of other makers in the programs' code: packages and scripts, without tests. */
export function checkTlsContexts(files: readonly SourceFile[]): Finding[] {
  return files.filter(isCode).flatMap((file) => {
    if (!/^(?:packages\/[\w-]+\/(?:src|node|bin)|scripts)\//.test(file.path)) return [];
    if (file.path === MAKER_HOME) return [];
    const { path, text } = file;
    const findings: Finding[] = [];
    for (const { index } of text.matchAll(/allowPartialTrustChain:/g))
      findings.push({ where: `${path}:${lineAt(text, index)}`, what: `use ${MAKER_HOME}` });
    if (MAKERS.test(text) || HANDED[path] !== undefined) return findings;
    const builtin = /getBuiltinModule\("node:(?:tls|https)"\)/.exec(text);
    if (builtin !== null)
      findings.push({ where: `${path}:${lineAt(text, builtin.index)}`, what: OWN_CONTEXT });
    for (const { specifier, typeOnly, line } of importsOfFile(file)) {
      if (typeOnly || !OPENERS.has(specifier)) continue;
      if (HARMLESS.test(text.split("\n")[line - 1])) continue;
      findings.push({ where: `${path}:${line}`, what: OWN_CONTEXT });
    }
    return findings;
  });
}

const OWN_CONTEXT = "opens TLS without tlsContext of the host, the one maker of contexts";
