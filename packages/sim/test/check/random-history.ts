/** Small random histories, some of them right and some a little wrong. */
import type { Random } from "@quorate/host";
import type { Answer, ModelOp, OpAnswer } from "../../src/base/model.ts";
import { type ModelRequest, ModelState } from "../../src/base/model.ts";
import type { Operation } from "../../src/base/operation.ts";

export interface HistoryShape {
  readonly operations: number;
  readonly keys: number;
  readonly clients: number;
  /** How likely it is that an answer is lost. */
  readonly lost: number;
  /** How likely it is that one thing in the history is made wrong. */
  readonly wrong: number;
  /** Values differ, so that few things look alike. */
  readonly uniqueValues: boolean;
  /** Some puts hang their key on one of two leases, which end once, at any time. */
  readonly leases?: boolean;
}

function randomOp(random: Random, shape: HistoryShape, i: number): ModelOp {
  const key = String.fromCharCode(97 + random.below(shape.keys));
  const value = shape.uniqueValues ? `${i}` : `${random.below(2)}`;
  const end =
    random.below(4) === 0 ? String.fromCharCode(key.charCodeAt(0) + 1 + random.below(2)) : "";
  const lease =
    shape.leases === true && random.below(2) === 0 ? { lease: `${random.below(2)}` } : {};
  return [
    { kind: "put", key, value, ...lease } as const,
    { kind: "range", key, end } as const,
    { kind: "delete", key, end } as const,
  ][[0, 0, 0, 1, 1, 1, 2][random.below(7)]];
}

function randomRequest(random: Random, shape: HistoryShape, i: number): ModelRequest {
  if (random.below(4) > 0) return randomOp(random, shape, i);
  const key = String.fromCharCode(97 + random.below(shape.keys));
  const result = (["=", "!="] as const)[random.below(2)];
  const compare =
    random.below(2) === 0
      ? {
          key,
          target: "value" as const,
          result,
          operand: shape.uniqueValues ? `${random.below(i + 1)}` : `${random.below(2)}`,
        }
      : {
          key,
          target: (["mod", "create", "version"] as const)[random.below(3)],
          result,
          operand: 0,
        };
  return {
    kind: "txn",
    compares: random.below(5) === 0 ? [] : [compare],
    success: [randomOp(random, shape, i)],
    failure: random.below(2) === 0 ? [] : [randomOp(random, shape, i)],
  };
}

function spoil(random: Random, answer: Answer): Answer {
  const at = random.below(answer.answers.length + 1);
  if (at === answer.answers.length)
    return { ...answer, revision: Math.max(1, answer.revision + random.below(3) - 1) };
  const answers = answer.answers.map((one, i): OpAnswer => {
    if (i !== at) return one;
    if (one.kind === "delete")
      return { ...one, deleted: Math.max(0, one.deleted + random.below(3) - 1) };
    if (one.kind !== "range") return one;
    if (one.kvs.length > 0 && random.below(2) === 0) return { ...one, kvs: one.kvs.slice(1) };
    if (one.kvs.length === 0)
      return {
        ...one,
        kvs: [{ key: "a", value: `${random.below(3)}`, create: 2, mod: 2, version: 1 }],
      };
    return { ...one, kvs: one.kvs.map((kv) => ({ ...kv, value: `${random.below(3)}` })) };
  });
  return { ...answer, answers };
}

/**
 * A history of clients that ask one thing after the other; each request takes effect somewhere
 * between its call and its return.
 */
export function randomHistory(random: Random, shape: HistoryShape): Operation[] {
  interface Running {
    readonly op: Operation;
    answer: Answer | undefined;
  }
  const running: Running[] = [];
  const done: Operation[] = [];
  let state = new ModelState();
  let at = 0;
  let made = 0;
  const apply = (one: Running) => {
    const { answer, next } = state.apply(one.op.request);
    state = next;
    one.answer = answer;
  };
  const ends = new Set(shape.leases === true ? ["0", "1"] : []);
  while (made < shape.operations || running.length > 0) {
    const what = random.below(3);
    for (const lease of ends) {
      // After its end nothing can be put with it: the model does not know that, so it ends late.
      if (made < shape.operations || random.below(4) > 0) continue;
      if (
        running.some(
          ({ op, answer }) =>
            answer === undefined && JSON.stringify(op.request).includes(`"lease":"${lease}"`),
        )
      )
        continue;
      state = state.apply({ kind: "revoke", lease }).next;
      ends.delete(lease);
    }
    const one = running[random.below(Math.max(1, running.length))];
    if (what === 0 && made < shape.operations && running.length < shape.clients) {
      const request = randomRequest(random, shape, made++);
      const op = {
        client: `c${made}`,
        request,
        serializable: false,
        atRevision: 0,
        calledAt: at++,
        returnedAt: undefined,
        outcome: undefined,
      };
      running.push({ op, answer: undefined });
    } else if (what === 1 && one !== undefined && one.answer === undefined) apply(one);
    else if (what === 2 && one !== undefined) {
      const isLost = random.unit() < shape.lost;
      if (one.answer === undefined && !isLost) apply(one);
      one.op.returnedAt = at++;
      if (!isLost) one.op.outcome = { kind: "answered", answer: one.answer! };
      else {
        one.op.outcome = { kind: "unknown", error: "lost" };
        // It may still take effect, after its client gave up.
        if (one.answer === undefined && random.below(2) === 0)
          running.push({ op: { ...one.op }, answer: undefined });
      }
      running.splice(running.indexOf(one), 1);
      if (!done.some(({ calledAt }) => calledAt === one.op.calledAt)) done.push(one.op);
    }
  }
  for (let wrong = shape.wrong; random.unit() < wrong; wrong -= 0.1) {
    const answered = done.filter(({ outcome }) => outcome?.kind === "answered");
    const revealing = answered.filter(({ request }) => request.kind !== "put");
    const one = (revealing.length > 0 ? revealing : answered)[
      random.below(Math.max(1, (revealing.length > 0 ? revealing : answered).length))
    ];
    if (one?.outcome?.kind === "answered")
      one.outcome = { kind: "answered", answer: spoil(random, one.outcome.answer) };
  }
  return done;
}
