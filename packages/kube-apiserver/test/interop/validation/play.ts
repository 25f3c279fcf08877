/** Sends the cases, and says what each server answered. */
import { isDeepStrictEqual } from "node:util";
import { keptAnswers } from "../comparison.ts";
import { type ApiAccess, type ApiResponse, exchange } from "../rest/exchange.ts";
import { KINDS, type KindCases } from "./cases.ts";

export interface Answer {
  /** Resource, verb and changes. */
  readonly case: string;
  readonly status: number;
  /** Of a refusal: each cause as "reason field: message", in alphabetical order. */
  readonly causes: readonly string[];
}

/** kube-apiserver's stored answers. */
export function kubeAnswers(): Answer[] {
  const answers = keptAnswers<Answer>(import.meta.dirname);
  return answers.map((answer) => ({ ...answer, causes: answer.causes.map(plain) }));
}

type Fields = Record<string, unknown>;

/** The object with the changes of a line. */
export function changed(object: unknown, line: string): Fields {
  const copy = structuredClone(object) as Fields;
  for (const change of line.split(" ; ")) {
    const [path = "", value = ""] = change.trim().split(/ =(?: |$)(.*)/s);
    const steps = path.split(".");
    const last = steps.pop() ?? "";
    let at = copy;
    for (const [index, step] of steps.entries()) {
      const next = steps[index + 1] ?? last;
      at = (at[step] ??= /^\d+$/.test(next) ? [] : {}) as Fields;
    }
    if (value === "") delete at[last];
    else if (Array.isArray(at)) at.splice(Math.min(Number(last), at.length), 1, JSON.parse(value));
    else at[last] = JSON.parse(value);
  }
  return copy;
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

function pathOf({ resource, apiVersion, isClusterScoped }: KindCases): string {
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  return `${root}/${isClusterScoped === true ? "" : "namespaces/t/"}${resource}`;
}

/**
 * Go's internal types have no names for JSON, and differences of objects are drawn for people: of
 * such a text only what is said about the value counts. So of addresses that servers choose.
 */
function plain(text: string): string {
  return text
    .replace(/\n.*/s, "")
    .replace(/Invalid value: \{(?:".*,)?"[A-Z]\w*":.*\}: /s, "Invalid value: {}: ")
    .replace(/"10\.0\.0\.\d+": expected/, '"ADDRESS": expected')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g, "UID");
}

interface Refusal {
  readonly message?: string;
  readonly details?: {
    readonly causes?: readonly { reason?: string; field?: string; message?: string }[];
  };
}

function answerOf(name: string, { status, body }: ApiResponse): Answer {
  if (status < 400) return { case: name, status, causes: [] };
  const { message = "", details } = body as Refusal;
  const causes = (details?.causes ?? [{ message }]).map((cause) =>
    plain(`${cause.reason ?? ""} ${cause.field ?? ""}: ${cause.message ?? ""}`),
  );
  return { case: name, status, causes: [...new Set(causes)].sort() };
}

/** Sends all cases to a new server. Nothing but a good object of each kind is stored. */
export async function answersOf(access: ApiAccess, only = ""): Promise<Answer[]> {
  const send = (method: string, path: string, body: unknown): Promise<ApiResponse> =>
    exchange(access, { method, path, body });
  await send("POST", "/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "t" },
  });
  const answers: Answer[] = [];
  for (const kind of KINDS) {
    const path = pathOf(kind);
    const head = { apiVersion: kind.apiVersion, kind: kind.kind };
    const named = (name: string): Fields => ({ ...head, metadata: { name }, ...kind.good });
    for (const line of linesOf(kind.creates)) {
      const name = `${kind.resource} create ${line}`;
      if (!name.includes(only)) continue;
      const response = await send("POST", `${path}?dryRun=All`, changed(named("x"), line));
      answers.push(answerOf(name, response));
    }
    const stored = await send("POST", path, named("base"));
    answers.push(answerOf(`${kind.resource} create`, stored));
    for (const line of linesOf(kind.updates)) {
      const name = `${kind.resource} update ${line}`;
      if (!name.includes(only)) continue;
      const { metadata } = stored.body as { readonly metadata: { readonly name: string } };
      const at = `${path}/${metadata.name}?dryRun=All`;
      const response = await send("PUT", at, changed(stored.body, line));
      answers.push(answerOf(name, response));
    }
  }
  return answers;
}

export interface Difference {
  readonly ours: Answer;
  readonly theirs: Answer | undefined;
}

/** The cases with another status or other causes. */
export function differencesOf(ours: readonly Answer[], theirs: readonly Answer[]): Difference[] {
  const byCase = new Map(theirs.map((one) => [one.case, one]));
  return ours.flatMap((one) => {
    const other = byCase.get(one.case);
    return isDeepStrictEqual(one, other) ? [] : [{ ours: one, theirs: other }];
  });
}
