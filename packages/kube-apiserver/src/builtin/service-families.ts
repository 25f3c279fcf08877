/**
 * Which families of addresses a Service has (kubernetes: registry/core/service/storage/alloc.go):
 *
 *     nothing said                   the cluster's first family, SingleStack
 *     PreferDualStack                both, where the cluster has both
 *     headless, without a selector   both, whatever the cluster has
 */
import { type FieldError, invalid, invalidValue, semanticEqual } from "@quorate/kube-storage";
import { listOf, type ObjectFields, textOf } from "./rules/rules.ts";
import { addressErrors } from "./rules/services.ts";
import { type Family, familyOf } from "./service-ranges.ts";
import { needsClusterIp } from "./services.ts";

const BOTH: readonly Family[] = ["IPv4", "IPv6"];
const POLICY = "spec.ipFamilyPolicy";
const SERVICE = { group: "", kind: "Service" };

export function familiesOf(spec: ObjectFields): readonly Family[] {
  return listOf<Family>(spec["ipFamilies"]);
}

export function addressesOf(spec: ObjectFields): readonly string[] {
  return listOf<string>(spec["clusterIPs"]);
}

export function serviceInvalid(name: string, errors: readonly FieldError[]): Error {
  return invalid(SERVICE, name, errors);
}

/**
 * An update of a service with both families where possible: the cluster's change to or from two
 * families changes no service.
 */
export function staysPreferred(spec: ObjectFields, before: ObjectFields | undefined): boolean {
  if (before === undefined || spec["type"] !== before["type"] || !needsClusterIp(spec))
    return false;
  const { ipFamilyPolicy: had = "PreferDualStack" } = before;
  if (spec["ipFamilyPolicy"] !== "PreferDualStack" || had !== "PreferDualStack") return false;
  const isSame = (name: string): boolean => semanticEqual(listOf(spec[name]), listOf(before[name]));
  return isSame("clusterIPs") && isSame("ipFamilies");
}

function isHeadlessAlone(spec: ObjectFields): boolean {
  return spec["clusterIP"] === "None" && Object.keys(spec["selector"] ?? {}).length === 0;
}

function policyOf(spec: ObjectFields, before: ObjectFields | undefined): string {
  const own = textOf(spec["ipFamilyPolicy"]) || textOf(before?.["ipFamilyPolicy"]);
  return own || (isHeadlessAlone(spec) ? "RequireDualStack" : "SingleStack");
}

/** A service that is to have one family keeps the first of what it had. */
function reduced(
  spec: ObjectFields,
  before: ObjectFields,
  policy: string,
  errors: FieldError[],
): ObjectFields {
  const result: Record<string, unknown> = { ...spec };
  const check = (name: string, what: string): void => {
    const [now, had] = [listOf(spec[name]), listOf(before[name])];
    if (policy !== "SingleStack") {
      if (now.length === 0 || now.length >= had.length) return;
      errors.push(
        invalidValue(POLICY, policy, `must be 'SingleStack' to release the secondary ${what}`),
      );
    } else if (now.length > 1 && semanticEqual(now, had)) result[name] = now.slice(0, 1);
  };
  check("clusterIPs", "cluster IP");
  check("ipFamilies", "IP family");
  return result;
}

/**
 * The spec with its policy and its families. Throws ApiError 422.
 * @param before of an update
 * @param cluster the cluster's families, its default first
 */
export function withFamilies(
  spec: ObjectFields,
  before: ObjectFields | undefined,
  name: string,
  cluster: readonly Family[],
): ObjectFields {
  if (!needsClusterIp(spec) || staysPreferred(spec, before)) return spec;
  const policy = policyOf(spec, before);
  const refuse = (errors: readonly FieldError[]): void => {
    if (errors.length > 0) throw serviceInvalid(name, errors);
  };
  refuse(addressErrors({ ...spec, ipFamilyPolicy: policy }, before));
  const errors: FieldError[] = [];
  const own = before === undefined ? spec : reduced(spec, before, policy, errors);
  const addresses = addressesOf(own);
  const families = [...familiesOf(own)];
  if (policy === "SingleStack") {
    const text = (what: string) =>
      `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`;
    if (addresses.length === 2) errors.push(invalidValue(POLICY, policy, text("cluster IPs")));
    if (families.length === 2) errors.push(invalidValue(POLICY, policy, text("IP families")));
  }
  for (const [index, address] of addresses.entries()) {
    if (address === "None") break;
    if (index < families.length) continue;
    const family = familyOf(address);
    if (cluster.includes(family)) families.push(family);
    else {
      const why = `${family} is not configured on this cluster`;
      errors.push(invalidValue(`spec.clusterIPs[${index}]`, addresses, why));
    }
  }
  refuse(errors);
  const [first = defaultOf(cluster)] = families;
  const withFirst = families.length === 0 ? [first] : families;
  const both = [first, ...BOTH.filter((one) => one !== first)];
  const result = (ipFamilies: readonly Family[]) => ({
    ...own,
    ipFamilyPolicy: policy,
    ipFamilies,
  });
  if (isHeadlessAlone(spec))
    return result(withFirst.length === 1 && policy !== "SingleStack" ? both : withFirst);
  if (policy === "RequireDualStack" && cluster.length < 2) {
    const why = "this cluster is not configured for dual-stack services";
    errors.push(invalidValue(POLICY, policy, why));
  }
  for (const [index, family] of families.entries()) {
    if (cluster.includes(family)) continue;
    const at = `spec.ipFamilies[${index}]`;
    errors.push(invalidValue(at, family, "not configured on this cluster"));
  }
  refuse(errors);
  const wantsBoth = policy !== "SingleStack" && withFirst.length === 1 && cluster.length === 2;
  return result(wantsBoth ? both : withFirst);
}

function defaultOf([first = "IPv4"]: readonly Family[]): Family {
  return first;
}
