/**
 * What the API server authorizes and what it does come from one value: its Target, which one call
 * makes of the request's head. No handler reads the path or the method again.
 */
import { codeOnly } from "../../../test/house/scan.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "../../../test/house/tree.ts";

const SOURCES = "packages/kube-apiserver/src/";
/** The class, and the one place that makes a Target of a request. */
const HOME = `${SOURCES}handlers/target.ts`;
const MAKER = `${SOURCES}server/api-server.ts`;
/** Folders that serve what was authorized. */
const SERVING = /^packages\/kube-apiserver\/src\/(?:handlers|builtin|typed|crd)\//;

/** A Target that is made elsewhere, and a handler that looks at the request's path or method. */
export function checkTargets(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => isCode(file) && file.path.startsWith(SOURCES))
    .flatMap((file) => {
      const code = codeOnly(file.text);
      const found = (pattern: RegExp, what: string): Finding[] =>
        [...code.matchAll(pattern)].map(({ index }) => ({
          where: `${file.path}:${lineAt(file.text, index)}`,
          what,
        }));
      const isMaker = file.path === HOME || file.path === MAKER;
      const made = isMaker
        ? []
        : found(/\bTarget\.of\(|\bnew Target\(|\bas Target\b/g, "makes a Target: take the call's");
      if (!SERVING.test(file.path) || file.path === HOME) return made;
      const read =
        /\bhead\.(?:path|method|query)\b|\{[^{}]*\b(?:path|method)\b[^{}]*\} = [\w.]*head\b/g;
      return [
        ...made,
        ...found(read, "reads the request's head: what was authorized is its Target"),
      ];
    });
}
