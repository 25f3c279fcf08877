/** The error of a request that no authorizer allows (apiserver: responsewriters/errors.go). */

import { ApiError, forbidden } from "@quorate/kube-storage";
import { escapeHtml, quoteText as goQuote } from "@quorate/proto";
import type { AuthorizerAttributes } from "../authz/authorizer.ts";

/** @param reason of the authorizer; "" for none */
export function forbiddenError(attributes: AuthorizerAttributes, reason: string): ApiError {
  // The text holds what the client sent; a browser must not take it for HTML.
  const message = escapeHtml(forbiddenMessage(attributes), /[&<>]/g);
  const why = reason === "" ? message : `${message}: ${reason}`;
  const { group, resource, name } = attributes;
  if (group === "" && resource === "")
    return new ApiError(403, "Forbidden", `forbidden: ${why}`, {});
  return forbidden({ group, resource }, name, why);
}

function forbiddenMessage(attributes: AuthorizerAttributes): string {
  const { verb, group, namespace, resource, subresource, path } = attributes;
  const user = `User ${goQuote(attributes.user.name)} cannot ${verb}`;
  if (!attributes.isResourceRequest) return `${user} path ${goQuote(path)}`;
  const whole = subresource === "" ? resource : `${resource}/${subresource}`;
  const of = `${user} resource ${goQuote(whole)} in API group ${goQuote(group)}`;
  return namespace === ""
    ? `${of} at the cluster scope`
    : `${of} in the namespace ${goQuote(namespace)}`;
}
