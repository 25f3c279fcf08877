/** The rules for a definition's conversion (apiserver: pkg/util/webhook/validation.go). */

import type { FieldError } from "@quorate/kube-storage";
import {
  fieldForbidden,
  invalidValue,
  isDns1035Label,
  notSupported,
  required,
} from "@quorate/kube-storage";
import type { WebhookClientConfig } from "../../admission/webhook-caller.ts";
import { at, child } from "../schema/paths.ts";
import type { StoredConversion } from "./stored-form.ts";
import { isCaBundle, serviceErrors, urlErrors } from "./webhook-rules.ts";

export interface ConversionOptions {
  /** Whether one review version must be a known one. */
  readonly knownVersion: boolean;
  /** Whether certificates that cannot be read are accepted. */
  readonly anyCaBundle: boolean;
}

const STRATEGIES = ["None", "Webhook"];
/** The versions of ConversionReview that are spoken. */
export const REVIEW_VERSIONS: readonly string[] = ["v1", "v1beta1"];

export function conversionErrors(
  conversion: StoredConversion | undefined,
  path: string,
  options: ConversionOptions,
): FieldError[] {
  if (conversion === undefined) return [];
  const { strategy = "", webhookClientConfig: config, conversionReviewVersions } = conversion;
  const errors: FieldError[] = [];
  const where = child(path, "strategy");
  if (strategy === "") errors.push(required(where));
  else if (!STRATEGIES.includes(strategy)) errors.push(notSupported(where, strategy, STRATEGIES));
  const configPath = child(path, "webhookClientConfig");
  const versionsPath = child(path, "conversionReviewVersions");
  if (strategy === "Webhook") {
    errors.push(...configErrors(config, configPath, options.anyCaBundle));
    const known = options.knownVersion;
    return [...errors, ...versionErrors(conversionReviewVersions ?? [], versionsPath, known)];
  }
  const detail = "should not be set when strategy is not set to Webhook";
  if (config !== undefined) errors.push(fieldForbidden(configPath, detail));
  if ((conversionReviewVersions?.length ?? 0) > 0)
    errors.push(fieldForbidden(versionsPath, detail));
  return errors;
}

function configErrors(
  config: WebhookClientConfig | undefined,
  path: string,
  anyCaBundle: boolean,
): FieldError[] {
  if (config === undefined) return [required(path, "required when strategy is set to Webhook")];
  const { url, service, caBundle = "" } = config;
  const errors: FieldError[] = [];
  if ((url === undefined) === (service === undefined)) {
    errors.push(required(path, "exactly one of url or service is required"));
  } else if (url !== undefined) errors.push(...urlErrors(url, child(path, "url")));
  else if (service !== undefined) errors.push(...serviceErrors(service, child(path, "service")));
  if (caBundle !== "" && !anyCaBundle && !isCaBundle(caBundle)) {
    const detail = "unable to load root certificates: unable to parse bytes as PEM block";
    errors.push(invalidValue(child(path, "caBundle"), caBundle, detail));
  }
  return errors;
}

function versionErrors(versions: readonly string[], path: string, known: boolean): FieldError[] {
  if (versions.length === 0) return [required(path)];
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, version] of versions.entries()) {
    if (seen.has(version)) {
      errors.push(invalidValue(at(path, i), version, "duplicate version"));
      continue;
    }
    seen.add(version);
    const texts = isDns1035Label(version);
    errors.push(...texts.map((text) => invalidValue(at(path, i), version, text)));
  }
  if (known && !versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    const detail = `must include at least one of ${REVIEW_VERSIONS.join(", ")}`;
    errors.push(invalidValue(path, versions, detail));
  }
  return errors;
}

/** Whether the known versions are listed, or none is. */
export function hasKnownVersion(versions: readonly string[] | undefined): boolean {
  const all = versions ?? [];
  return all.length === 0 || all.some((version) => REVIEW_VERSIONS.includes(version));
}
