/** The error of a request without permission (apiserver: responsewriters/errors.go). */
import type { AuthorizerAttributes } from "../authz/authorizer.ts";
import { ApiError, forbidden } from "../meta/status.ts";

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** @param reason of the authorizer; "" for none */
export function forbiddenStatus(attributes: AuthorizerAttributes, reason: string): ApiError {
  const { group, resource, name } = attributes;
  const message = messageOf(attributes).replace(/[&<>]/g, (char) => ESCAPES[char]);
  const why = reason === "" ? message : `${message}: ${reason}`;
  if (resource !== "") return forbidden({ group, resource }, name, why);
  return new ApiError(403, "Forbidden", `forbidden: ${why}`, {});
}

function messageOf(attributes: AuthorizerAttributes): string {
  const { user, verb, isResourceRequest, path, subresource, group, namespace } = attributes;
  const [who, doing] = [JSON.stringify(user.name), `cannot ${verb}`];
  if (!isResourceRequest) return `User ${who} ${doing} path ${JSON.stringify(path)}`;
  const resource =
    subresource === "" ? attributes.resource : `${attributes.resource}/${subresource}`;
  const what = `resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)}`;
  const where =
    namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  return `User ${who} ${doing} ${what} ${where}`;
}
