/** Responses that differ from kube-apiserver's on purpose, with the reason. */
import type { ApiRequest, ApiResponse } from "./exchange.ts";

interface Difference {
  readonly method: string;
  readonly path: string;
  /** In the request's body, where several requests have the path. */
  readonly contains?: string;
  readonly status: number;
  readonly message: string;
  readonly reason: string;
}

const CLIENTS_ERROR = "a malformed revision is the client's error: 400 with a reason, not 500";
const ABC =
  'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax';

const DIFFERENCES: readonly Difference[] = [
  {
    method: "PUT",
    path: "/api/v1/namespaces/t/configmaps/a",
    contains: '"resourceVersion":"abc"',
    status: 400,
    message: 'strconv.ParseUint: parsing "abc": invalid syntax',
    reason: CLIENTS_ERROR,
  },
  {
    method: "GET",
    path: "/api/v1/namespaces/t/configmaps?watch=1&resourceVersion=abc&timeoutSeconds=1",
    status: 400,
    message: `invalid resource version: ${ABC}`,
    reason: CLIENTS_ERROR,
  },
  {
    method: "GET",
    path: "/api/v1/namespaces/t/configmaps/p?resourceVersion=abc",
    status: 400,
    message: `invalid resource version: ${ABC}`,
    reason: CLIENTS_ERROR,
  },
];

/** Whether the response is one that differs on purpose. */
export function isIntended(request: ApiRequest, response: ApiResponse): boolean {
  const body = JSON.stringify(request.body ?? "");
  return DIFFERENCES.some(
    ({ method, path, contains = "", status, message }) =>
      request.method === method &&
      request.path === path &&
      body.includes(contains) &&
      response.status === status &&
      (response.body as { readonly message?: string }).message === message,
  );
}
