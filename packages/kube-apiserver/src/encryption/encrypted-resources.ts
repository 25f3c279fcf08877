/** Names of resources in an EncryptionConfiguration: which are valid, and which rule fits. */

import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, required } from "@quorate/kube-storage";

const OVERLAP =
  "using overlapping resources such as 'secrets' and '*.' in the same resource list is not " +
  "allowed as they will be masked";
const STAR =
  "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources";
const EVENTS =
  "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' " +
  "instead in the config file";

/** Allocations that have no REST API. */
const internalResources: ReadonlySet<string> = new Set([
  "apiserveripinfo",
  "serviceipallocations",
  "servicenodeportallocations",
]);

interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

/** "secrets" is of the core group; what follows the first dot is the group. */
function parsed(text: string): GroupResource {
  const dot = text.indexOf(".");
  return dot < 0
    ? { group: "", resource: text }
    : { group: text.slice(dot + 1), resource: text.slice(0, dot) };
}

/** As a rule writes it: "*." for all of the core group. */
function shown({ group, resource }: GroupResource): string {
  if (group === "") return resource === "*" ? "*." : resource;
  return `${resource}.${group}`;
}

export function resourceErrors(resources: readonly string[], path: string): FieldError[] {
  if (resources.length === 0) return [required(path, `at least one ${path} is required`)];
  return [
    ...listErrors(resources, path),
    ...resources.flatMap((text, at) => {
      const why = wrongName(text);
      return why === undefined ? [] : [invalidValue(`${path}[${at}]`, text, why)];
    }),
  ];
}

function listErrors(resources: readonly string[], path: string): FieldError[] {
  const all = resources.map(parsed);
  const texts = all.map(shown);
  const errors: FieldError[] = [];
  if (new Set(texts).size < texts.length)
    errors.push(
      invalidValue(path, resources, "the same resource cannot be specified multiple times"),
    );
  const overlaps = all.some((one, at) =>
    all.some(
      (other, index) =>
        at !== index &&
        texts[at] !== texts[index] &&
        one.resource === "*" &&
        (one.group === "*" || one.group === other.group),
    ),
  );
  if (overlaps) errors.push(invalidValue(path, resources, OVERLAP));
  return errors;
}

function wrongName(text: string): string | undefined {
  if (text.toLowerCase() !== text) return "resource name should not contain capital letters";
  if (text === "*") return STAR;
  if (internalResources.has(text))
    return "resources which do not have REST API/s cannot be encrypted";
  const { group, resource } = parsed(text);
  if (group === "events.k8s.io") return EVENTS;
  if (group === "extensions")
    return "'extensions' group has been removed and cannot be used for encryption";
  if (group === "*" && resource !== "*")
    return "encrypting the same resource across groups is not supported";
  return undefined;
}

/**
 * Groups what rules have for each resource, in the order of the rules. Throws Error for a resource
 * that an earlier rule for its whole group, or for all, hides.
 */
export function rulesByResource<T>(
  rules: readonly { readonly resources: readonly string[]; readonly providers: readonly T[] }[],
): Map<string, readonly T[]> {
  const found = new Map<string, readonly T[]>();
  for (const { resources, providers } of rules)
    for (const text of resources) {
      const resource = parsed(text);
      for (const mask of [`*.${resource.group}`, "*.*"])
        if (found.has(mask))
          throw new Error(
            `resource ${JSON.stringify(shown(resource))} is masked by earlier rule ${JSON.stringify(mask)}`,
          );
      found.set(shown(resource), [...(found.get(shown(resource)) ?? []), ...providers]);
    }
  return found;
}

/** The rule of a resource: its own, else its group's, else that for all. */
export function ruleOf<T>(rules: ReadonlyMap<string, T>, resource: GroupResource): T | undefined {
  return rules.get(shown(resource)) ?? rules.get(`*.${resource.group}`) ?? rules.get("*.*");
}
