/**
 * Answers that differ from kube-apiserver's, and why (docs/reference/kubernetes-differences.md).
 */
/** Where an answer differs, and no accepted difference says why. */
export interface RouteDifference {
  readonly request: string;
  readonly user: string;
  readonly theirs: string;
  readonly ours: string;
}

export interface AcceptedDifference {
  readonly why: string;
  is(difference: RouteDifference, method: string, path: string): boolean;
}

export const accepted: readonly AcceptedDifference[] = [
  {
    why: "a custom object is not created at a path that names another one",
    is: ({ theirs, ours }, method, path) =>
      method === "POST" &&
      /\/(?:widgets|gadgets)(?:\/|%2F)/.test(path) &&
      /^(?:409|404) /.test(theirs) &&
      ours.startsWith("405 create is not supported"),
  },
  {
    why: "a path without a resource behind its verb is the client's error, and audited",
    is: ({ theirs, ours }, _method, path) =>
      /^\/api\/v1\/(?:watch|proxy)\/?$/.test(path) &&
      theirs.startsWith("500 ") &&
      ours.startsWith("400 "),
  },
  {
    why: "broken escapes end in a Status, and are audited",
    is: ({ theirs, ours }, _method, path) =>
      /%zz|%$/.test(path) && theirs.startsWith("400 ") && ours.startsWith("400 "),
  },
  {
    why: "escapes that are no UTF-8 are broken",
    is: ({ theirs, ours }, _method, path) =>
      path.includes("%ff") && /^40[34] /.test(theirs) && ours.startsWith("400 "),
  },
  {
    why: "a namespace that is no name is the client's error",
    is: ({ theirs, ours }, _method, path) =>
      /\/namespaces\/\.\.?\//.test(path) && theirs.startsWith("500 ") && ours.startsWith("400 "),
  },
];
