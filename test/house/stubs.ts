/**
 * A stub in a test that is given a callback and never uses it makes a test that holds for any
 * callback: the code under test may hand over a wrong one, or hand it over at the wrong time. So
 * each function in a test that takes a callback uses it, fails when it is called, or has its reason
 * in `LOOKED_AT`. What takes a callback, the types say: a function that leaves the parameter out
 * takes it all the same.
 */
import { relative } from "node:path";
import {
  type ArrowFunction,
  type FunctionExpression,
  type MethodDeclaration,
  type Node,
  type SourceFile,
  SyntaxKind,
} from "typescript/unstable/ast";
import {
  API,
  type Checker,
  type Project,
  type Signature,
  SignatureKind,
} from "typescript/unstable/sync";
import { type Finding, lineAt, repositoryRoot } from "./tree.ts";

const NEVER_CHANGES = "what is stubbed never changes in these tests, so nobody is to be told";

/** Callbacks that may be left out: the file, and the parameter of what is stubbed. */
export const LOOKED_AT: Readonly<Record<string, string>> = {
  "packages/kube-apiserver/test/policy/admission-limits.test.ts listener": NEVER_CHANGES,
  "packages/kube-apiserver/test/policy/rbac.test.ts source": "rules are counted, not read",
  "packages/rpc/test/websocket.test.ts listener": "the stream is refused before it listens",
  "packages/server/test/support/watching.ts listener": "a call that nobody cancels",
  "packages/server/test/support/leases.ts listener": "a call that nobody cancels",
  "packages/server/test/http-kv-watch.test.ts task":
    "lines stay kept: the end of a turn is not met",
  "packages/server/test/tls-metrics.test.ts listener": "metrics read certificates when asked",
  "packages/transport/test/identity.test.ts reported": "no member knows of another one",
  "test/support/ctl-io.ts stop": "nobody sends a signal to a program that a test runs",
  "test/e2e/auth.test.ts open": "the scenario has the clients that it needs",
};
/**
 * Of Node, of JavaScript and of its tests, and of what tests say: who calls them with a function is
 * told by no type of this repository what that is given. Two thirds of all functions in tests stand
 * there, and a question to the checker takes a millisecond.
 */
const OF_OTHERS = new Set(
  (
    "test it describe suite before after beforeEach afterEach skip todo map flatMap filter find " +
    "findLast findIndex findLastIndex some every reduce reduceRight forEach sort toSorted from " +
    "replace replaceAll then catch finally throws rejects doesNotThrow doesNotReject Promise " +
    "setTimeout setImmediate setInterval queueMicrotask nextTick once addEventListener " +
    "removeListener groupBy fromEntries stringify parse property asyncProperty chain"
  ).split(" "),
);
/** Files whose callbacks are no collaborators: loaders of the module under test. */
const LOADERS = /\/parsers\.ts$/;

type Stub = ArrowFunction | FunctionExpression | MethodDeclaration;

/** Of a body that says that it must not be called. */
const REFUSES = /^(?:\{\s*)?(?:throw\b|(?:return )?assert\.fail\(|(?:return )?Promise\.reject\()/;

/** Stubs in the tests of a project that use no callback. @param tsconfig its path */
export function checkStubs(tsconfig: string, root: string = repositoryRoot): Finding[] {
  const api = new API({ cwd: root });
  try {
    const project = api.updateSnapshot({ openProjects: [tsconfig] }).getProjects()[0]!;
    return testsOf(project, root).flatMap(({ path, file }) =>
      unusedIn(file, project.checker).flatMap(({ node, callback }): Finding[] => {
        const key = `${path} ${callback}`;
        if (key in LOOKED_AT) return [];
        const line = lineAt(file.text, start(node, file));
        return [{ where: `${path}:${line}`, what: `a stub takes ${callback}, and never uses it` }];
      }),
    );
  } finally {
    api.close();
  }
}

function testsOf({ program }: Project, root: string) {
  return program
    .getSourceFileNames()
    .map((name) => ({ name, path: relative(root, name) }))
    .filter(({ path }) => /^(?:packages\/[\w-]+\/)?test\//.test(path) && !LOADERS.test(path))
    .map(({ name, path }) => ({ path, file: program.getSourceFile(name)! }));
}

const start = (node: Node, file: SourceFile): number =>
  node.pos + /^\s*/.exec(file.text.slice(node.pos, node.end))![0].length;

/** Functions of a file, and the callbacks that they are given and do not use. */
function unusedIn(file: SourceFile, checker: Checker): { node: Stub; callback: string }[] {
  const found: { node: Stub; callback: string }[] = [];
  const visit = (node: Node): undefined => {
    const signature = isStub(node) && mayStandIn(node) ? stubbed(node, checker) : undefined;
    if (signature !== undefined)
      for (const callback of unusedBy(node as Stub, signature, file, checker))
        found.push({ node: node as Stub, callback });
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

function isStub(node: Node): node is Stub {
  return (
    node.kind === SyntaxKind.ArrowFunction ||
    node.kind === SyntaxKind.FunctionExpression ||
    node.kind === SyntaxKind.MethodDeclaration
  );
}

/** False where no type of this repository says what the function is given. */
function mayStandIn({ kind, parent }: Stub): boolean {
  if (kind === SyntaxKind.MethodDeclaration) return true;
  if (parent.kind === SyntaxKind.VariableDeclaration)
    return (parent as { readonly type?: Node }).type !== undefined;
  if (parent.kind !== SyntaxKind.CallExpression && parent.kind !== SyntaxKind.NewExpression)
    return true;
  const { expression } = parent as Node & { readonly expression: Node };
  const { name, text } = expression as { readonly name?: { text?: string }; text?: string };
  return !OF_OTHERS.has(name?.text ?? text ?? "");
}

/** The signature that a function stands in for, if it is declared in this repository. */
function stubbed(node: Stub, checker: Checker): Signature | undefined {
  const type =
    node.kind === SyntaxKind.MethodDeclaration
      ? typeOfMethod(node as MethodDeclaration, checker)
      : checker.getContextualType(node as ArrowFunction);
  const called = type && (checker.getNonNullableType(type) ?? type);
  if (called === undefined) return undefined;
  const signatures = checker.getSignaturesOfType(called, SignatureKind.Call);
  const path = signatures[0]?.declaration?.path;
  const isOurs = path !== undefined && !/node_modules|^bundled:/.test(path);
  return signatures.length === 1 && isOurs ? signatures[0] : undefined;
}

/** What a method of an object, or of a class that implements an interface, has to be. */
function typeOfMethod(node: MethodDeclaration, checker: Checker) {
  const name = (node.name as { readonly text?: string }).text;
  const { parent } = node;
  if (name === undefined) return undefined;
  const wholes =
    parent.kind === SyntaxKind.ObjectLiteralExpression
      ? [checker.getContextualType(parent as never)]
      : implemented(parent).map((one) => checker.getTypeAtLocation(one));
  for (const whole of wholes) {
    const property = whole && checker.getPropertyOfType(whole, name);
    if (property !== undefined) return checker.getTypeOfSymbol(property);
  }
  return undefined;
}

/** The types after `implements` and `extends` of a class. */
function implemented(node: Node): readonly Node[] {
  const { heritageClauses } = node as { readonly heritageClauses?: readonly { types: Node[] }[] };
  return [...(heritageClauses ?? [])].flatMap(({ types }) => [...types]);
}

function unusedBy(node: Stub, signature: Signature, file: SourceFile, checker: Checker): string[] {
  if (node.body === undefined) return [];
  const body = file.text.slice(node.body.pos, node.body.end).trim();
  if (REFUSES.test(body)) return [];
  return signature.getParameters().flatMap((parameter, i) => {
    const type = checker.getParameterType(signature, i);
    const isCallback =
      type !== undefined && checker.getSignaturesOfType(type, SignatureKind.Call).length > 0;
    if (!isCallback) return [];
    const own = node.parameters[i];
    if (own === undefined) return node.parameters.at(-1)?.dotDotDotToken ? [] : [parameter.name];
    const name = (own.name as { readonly text?: string }).text;
    return name !== undefined && !new RegExp(`\\b${name}\\b`).test(body) ? [parameter.name] : [];
  });
}
