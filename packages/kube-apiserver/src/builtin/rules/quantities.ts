/** Names and amounts of resources (kubernetes: apis/core/helper, apis/core/validation). */
import {
  compareQuantities,
  type FieldError,
  fieldErrors,
  invalidValue,
  isQualifiedName,
  quantityNumber,
  required,
} from "@quorate/kube-storage";
import { type ObjectFields, objectOf, type Rule, type TextCheck, textOf } from "./rules.ts";

export type Quantities = Readonly<Record<string, string>>;

const CONTAINER = ["cpu", "memory", "ephemeral-storage"];
const QUOTA = [
  ...CONTAINER,
  ...CONTAINER.flatMap((name) => [`requests.${name}`, `limits.${name}`]),
  "requests.storage",
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "persistentvolumeclaims",
  "configmaps",
  "services.nodeports",
  "services.loadbalancers",
];
const COUNTED = QUOTA.slice(QUOTA.indexOf("pods"));
const STANDARD = [...QUOTA, "storage"];

export function isHugePages(name: string): boolean {
  return name.startsWith("hugepages-");
}

export function isNative(name: string): boolean {
  return !name.includes("/") || name.includes("kubernetes.io/");
}

export function isExtended(name: string): boolean {
  if (isNative(name) || name.startsWith("requests.")) return false;
  return isQualifiedName(`requests.${name}`).length === 0;
}

/** Whether more may be limited than requested. */
export function allowsOvercommit(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

const isResourceName: TextCheck = (name) => {
  const errors = isQualifiedName(name);
  if (errors.length > 0 || name.includes("/")) return errors;
  const isStandard = STANDARD.includes(name) || /^(?:requests\.)?hugepages-/.test(name);
  return isStandard ? [] : ["must be a standard resource type or fully qualified"];
};

/** A resource that containers have. */
export const isContainerResource: TextCheck = (name) => {
  const errors = isResourceName(name);
  if (!name.includes("/")) {
    const isStandard = CONTAINER.includes(name) || isHugePages(name);
    return isStandard ? errors : [...errors, "must be a standard resource for containers"];
  }
  if (isNative(name) || isExtended(name)) return errors;
  return [...errors, "doesn't follow extended resource name standard"];
};

/** A resource that a quota counts. */
export const isQuotaResource: TextCheck = (name) => {
  const errors = isResourceName(name);
  if (name.includes("/")) return errors;
  const isStandard = QUOTA.includes(name) || /^(?:requests\.)?hugepages-/.test(name);
  return isStandard ? errors : [...errors, "must be a standard resource for quota"];
};

export const isAnyResource: TextCheck = isResourceName;

/** An amount of a resource: not negative, and whole where only whole ones exist. */
export function amount(name: string, value: string, field: string, found: FieldError[]): void {
  notNegative(value, field, found);
  const isCounted = COUNTED.includes(name) || isExtended(name);
  if (isCounted && !Number.isInteger(quantityNumber(value))) {
    found.push(invalidValue(field, value, "must be an integer"));
  }
}

export const notNegative: Rule = (value, field, found) => {
  if (typeof value === "string" && quantityNumber(value) < 0) {
    found.push(invalidValue(field, value, "must be greater than or equal to 0"));
  }
};

export const positive: Rule = (value, field, found) => {
  if (typeof value === "string" && quantityNumber(value) <= 0) {
    found.push(invalidValue(field, value, "must be greater than zero"));
  }
};

/** Amounts by resource, with a check of the names. */
export function amounts(isName: TextCheck): Rule {
  return (value, field, found) => {
    for (const [name, quantity] of Object.entries(objectOf(value))) {
      const at = `${field}[${name}]`;
      for (const text of isName(name)) found.push(invalidValue(at, name, text));
      amount(name, textOf(quantity), at, found);
    }
  };
}

const HUGE_PAGES_ALONE = "HugePages require cpu or memory";

/** What a container asks for: no more than its limits. */
export const RESOURCES: Rule = (value, field, found) => {
  const { limits, requests } = objectOf(value) as { limits?: Quantities; requests?: Quantities };
  const check = amounts(isContainerResource);
  check(limits, `${field}.limits`, found);
  for (const [name, requested] of Object.entries(requests ?? {})) {
    check({ [name]: requested }, `${field}.requests`, found);
    const limit = limits?.[name];
    const say = (why: string): number =>
      found.push(invalidValue(`${field}.requests`, requested, `${why} ${name} limit of ${limit}`));
    if (limit === undefined) {
      if (allowsOvercommit(name)) continue;
      const why = "Limit must be set for non overcommitable resources";
      found.push(required(`${field}.limits`, why));
    } else if (!allowsOvercommit(name) && compareQuantities(requested, limit) !== 0) {
      say("must be equal to");
    } else if (compareQuantities(requested, limit) > 0) say("must be less than or equal to");
  }
  const names = [...Object.keys(limits ?? {}), ...Object.keys(requests ?? {})];
  if (names.some(isHugePages) && !names.includes("cpu") && !names.includes("memory")) {
    found.push(fieldErrors.fieldForbidden(field, HUGE_PAGES_ALONE));
  }
};

/** The quantities below a name. */
export function quantitiesOf(object: ObjectFields, name: string): Quantities {
  return objectOf(object[name]) as Quantities;
}
