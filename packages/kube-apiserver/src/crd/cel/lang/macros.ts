/**
 * Macros: has(), the comprehensions of lists and maps, optMap(), sortBy() (cel-go: parser/macro.go,
 * ext/comprehensions.go, cel/library.go, ext/lists.go). Kubernetes has no cel.bind().
 */
import { ACCU, type Expr, type Fold, SyntaxFault } from "./ast.ts";
import type { Nodes } from "./nodes.ts";

/** Undefined where the call is none of the macro after all. */
type Macro = (nodes: Nodes, at: number, target: Expr, args: readonly Expr[]) => Expr | undefined;

/** @param isMember whether the call has a target */
export function macroFor(name: string, isMember: boolean, argCount: number): Macro | undefined {
  return MACROS.get(`${isMember ? "." : ""}${name}/${argCount}`);
}

function variable(expr: Expr | undefined): string {
  if (expr?.kind !== "ident" || expr.name.startsWith("."))
    throw new SyntaxFault(expr?.at ?? 0, "argument must be a simple name");
  if (expr.name === ACCU || expr.name === "__result__")
    throw new SyntaxFault(expr.at, "iteration variable overwrites accumulator variable");
  return expr.name;
}

type Loop = Pick<Fold, "init" | "condition" | "step" | "result">;

function fold(
  nodes: Nodes,
  at: number,
  range: Expr,
  variables: readonly [string, string | undefined],
  loop: Loop,
): Expr {
  const [first, second] = variables;
  return nodes.fold(at, { range, first, second, accu: ACCU, isBinding: false, ...loop });
}

/** What the macros of one and of two variables do, by the rest of their arguments. */
const LOOPS: readonly (readonly [
  names: readonly string[],
  rests: readonly number[],
  make: (nodes: Nodes, at: number, rest: readonly Expr[], variables: readonly string[]) => Loop,
  forms: readonly (1 | 2)[],
])[] = [
  [
    ["all"],
    [1],
    (n, at, [test]) => ({
      init: n.literal(at, true),
      condition: n.call(at, "@not_strictly_false", [n.ident(at, ACCU)]),
      step: n.call(at, "_&&_", [n.ident(at, ACCU), test as Expr]),
      result: n.ident(at, ACCU),
    }),
    [1, 2],
  ],
  [
    ["exists"],
    [1],
    (n, at, [test]) => ({
      init: n.literal(at, false),
      condition: n.call(at, "@not_strictly_false", [n.call(at, "!_", [n.ident(at, ACCU)])]),
      step: n.call(at, "_||_", [n.ident(at, ACCU), test as Expr]),
      result: n.ident(at, ACCU),
    }),
    [1, 2],
  ],
  [
    ["exists_one", "existsOne"],
    [1],
    (n, at, [test]) => ({
      init: n.literal(at, 0n),
      condition: n.literal(at, true),
      step: n.call(at, "_?_:_", [
        test as Expr,
        n.call(at, "_+_", [n.ident(at, ACCU), n.literal(at, 1n)]),
        n.ident(at, ACCU),
      ]),
      result: n.call(at, "_==_", [n.ident(at, ACCU), n.literal(at, 1n)]),
    }),
    [1, 2],
  ],
  [["map"], [1, 2], (n, at, rest) => collected(n, at, rest), [1]],
  [["transformList"], [1, 2], (n, at, rest) => collected(n, at, rest), [2]],
  [
    ["filter"],
    [1],
    (n, at, [test], [name]) => collected(n, at, [test as Expr, n.ident(at, name as string)]),
    [1],
  ],
  [
    ["transformMap"],
    [1, 2],
    (n, at, rest, [key]) => inserted(n, at, rest, [n.ident(at, key as string)]),
    [2],
  ],
  [["transformMapEntry"], [1, 2], (n, at, rest) => inserted(n, at, rest, []), [2]],
];

/** accu + [element], where the filter of two arguments allows it. */
function collected(n: Nodes, at: number, rest: readonly Expr[]): Loop {
  const [filter, element] = rest.length === 2 ? rest : [undefined, rest[0]];
  const added = n.list(at, [{ value: element as Expr, isOptional: false }]);
  const step = n.call(at, "_+_", [n.ident(at, ACCU), added]);
  return {
    init: n.list(at, []),
    condition: n.literal(at, true),
    step: filtered(n, at, filter, step),
    result: n.ident(at, ACCU),
  };
}

function inserted(n: Nodes, at: number, rest: readonly Expr[], key: readonly Expr[]): Loop {
  const [filter, value] = rest.length === 2 ? rest : [undefined, rest[0]];
  const step = n.call(at, "cel.@mapInsert", [n.ident(at, ACCU), ...key, value as Expr]);
  return {
    init: n.map(at, []),
    condition: n.literal(at, true),
    step: filtered(n, at, filter, step),
    result: n.ident(at, ACCU),
  };
}

function filtered(n: Nodes, at: number, filter: Expr | undefined, step: Expr): Expr {
  return filter === undefined ? step : n.call(at, "_?_:_", [filter, step, n.ident(at, ACCU)]);
}

/** A variable for an expression. */
function bound(n: Nodes, at: number, name: string, init: Expr, result: Expr): Expr {
  return n.fold(at, {
    range: n.list(at, []),
    first: "#unused",
    second: undefined,
    accu: name,
    init,
    condition: n.literal(at, false),
    step: n.ident(at, name),
    result,
    isBinding: true,
  });
}

const has: Macro = (nodes, at, _target, [arg]) => {
  if (arg?.kind !== "select" || arg.isTest)
    throw new SyntaxFault(arg?.at ?? at, "invalid argument to has() macro");
  return nodes.select(at, arg.operand, arg.field, true);
};

/** optional.optMap(x, f): optional.of(f) where there is a value. */
function optional(isFlat: boolean): Macro {
  return (nodes, at, target, [name, result]) => {
    const varName = variable(name);
    const value = nodes.call(at, "value", [], target);
    const inner = bound(nodes, at, varName, value, result as Expr);
    const some = isFlat ? inner : nodes.call(at, "optional.of", [inner]);
    const hasValue = nodes.call(at, "hasValue", [], target);
    return nodes.call(at, "_?_:_", [hasValue, some, nodes.call(at, "optional.none", [])]);
  };
}

/** list.sortBy(x, key): sorts by the keys of the elements. */
const sortBy: Macro = (nodes, at, target, [name, key]) => {
  const varName = variable(name);
  const input = nodes.ident(at, "@__sortBy_input__");
  const keys = fold(
    nodes,
    at,
    nodes.ident(at, "@__sortBy_input__"),
    [varName, undefined],
    collected(nodes, at, [key as Expr]),
  );
  const sorted = nodes.call(at, "@sortByAssociatedKeys", [keys], input);
  return bound(nodes, at, "@__sortBy_input__", target, sorted);
};

const MACROS: ReadonlyMap<string, Macro> = new Map<string, Macro>([
  ["has/1", has],
  [".optMap/2", optional(false)],
  [".optFlatMap/2", optional(true)],
  [".sortBy/2", sortBy],
  ...LOOPS.flatMap(([names, rests, make, forms]) =>
    forms.flatMap((count) =>
      names.flatMap((name) =>
        rests.map((rest): readonly [string, Macro] => [
          `.${name}/${count + rest}`,
          (nodes, at, target, args) => {
            const first = variable(args[0]);
            const second = count === 2 ? variable(args[1]) : undefined;
            if (first === second)
              throw new SyntaxFault(args[1]?.at ?? at, `duplicate variable name: ${first}`);
            const loop = make(nodes, at, args.slice(count), [first]);
            return fold(nodes, at, target, [first, second], loop);
          },
        ]),
      ),
    ),
  ),
]);
