/** Sends every path with every method as three users, and writes down what came back. */
import { setTimeout as delay } from "node:timers/promises";
import { type ApiAccess, type ApiRequest, type ApiResponse, exchange } from "../rest/exchange.ts";
import { customObjects, GROUP, METHODS, requestOf, routeObjects, routePaths } from "./paths.ts";

/** Who asks: nobody may do anything, foo-admin everything in the namespace "foo", root all. */
export const USERS: Readonly<Record<string, readonly string[]>> = {
  nobody: [],
  "foo-admin": [],
  root: ["system:masters"],
};

/** The answers of one user to one path: each with the methods that it came to. */
export interface RouteAnswers {
  readonly path: string;
  readonly user: string;
  readonly answers: Readonly<Record<string, string>>;
}

const WAIT_LIMIT_MS = 60_000;
const MAX_MESSAGE_CHARS = 160;
/** Requests at a time. */
const WIDTH = 6;

/**
 * @param only paths that contain it
 * @param turn 0, 1 or 2: one user a path, the next one for the next path; undefined: all three
 */
export async function routeAnswers(
  access: ApiAccess,
  only = "",
  turn?: number,
): Promise<RouteAnswers[]> {
  await prepare(access);
  const users = Object.keys(USERS);
  const rows = routePaths()
    .filter((path) => path.includes(only))
    .flatMap((path, at) => {
      const asked = turn === undefined ? users : [users[(at + turn) % users.length]];
      return asked.map((user) => ({ path, user }));
    });
  const found: RouteAnswers[] = new Array(rows.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < rows.length; at = next++)
      found[at] = await answersOf(access, rows[at].path, rows[at].user);
  };
  await Promise.all(Array.from({ length: WIDTH }, worker));
  return found;
}

async function answersOf(access: ApiAccess, path: string, user: string): Promise<RouteAnswers> {
  const answers: Record<string, string> = {};
  for (const method of METHODS) {
    const response = await exchange(as(access, user), requestOf(method, path));
    const answer = answerOf(response);
    answers[answer] = answers[answer] === undefined ? method : `${answers[answer]} ${method}`;
  }
  return { path, user, answers };
}

function as(access: ApiAccess, user: string): ApiAccess {
  const groups = USERS[user].join(", ");
  const headers = { ...access.headers, "impersonate-user": user };
  return {
    ...access,
    headers: groups === "" ? headers : { ...headers, "impersonate-group": groups },
  };
}

/** The status, and of an error its text. */
function answerOf({ status, body }: ApiResponse): string {
  if (status < 400) return String(status);
  const { message } = (typeof body === "object" && body !== null ? body : {}) as {
    readonly message?: string;
  };
  const text = message ?? `(text) ${String(body).trimEnd()}`;
  return `${status} ${text.slice(0, MAX_MESSAGE_CHARS)}`;
}

/** Creates the objects, and waits until the custom kinds and the role are served. */
async function prepare(access: ApiAccess): Promise<void> {
  await create(access, routeObjects());
  for (const path of ["widgets", "gadgets"])
    await until(access, { method: "GET", path: `/apis/${GROUP}/v1/${path}` });
  await until(access, { method: "GET", path: `/apis/${GROUP}/v1` });
  await create(access, customObjects());
  await until(as(access, "foo-admin"), {
    method: "GET",
    path: "/api/v1/namespaces/foo/configmaps",
  });
}

async function create(
  access: ApiAccess,
  objects: readonly { readonly path: string; readonly body: unknown }[],
): Promise<void> {
  for (const { path, body } of objects) {
    const { status, body: answer } = await exchange(access, { method: "POST", path, body });
    if (status !== 201) throw new Error(`POST ${path}: ${status} ${JSON.stringify(answer)}`);
  }
}

async function until(access: ApiAccess, request: ApiRequest): Promise<void> {
  const endMs = performance.now() + WAIT_LIMIT_MS;
  while ((await exchange(access, request)).status !== 200) {
    if (performance.now() > endMs) throw new Error(`never served: ${request.path}`);
    await delay(100);
  }
}
