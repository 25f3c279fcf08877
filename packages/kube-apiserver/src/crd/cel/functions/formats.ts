/** Named formats: format.dns1123Label().validate(self) (apiserver: pkg/cel/library/format.go). */
import {
  isDns1035Label,
  isDns1123Label,
  isDns1123Subdomain,
  isLabelValue,
  isQualifiedName,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { formatCheck } from "../../validation/formats.ts";
import type { Environment } from "../lang/environment.ts";
import { FORMAT, LibraryValue } from "../lang/library.ts";
import { Optional } from "../lang/values.ts";
import { parseUrl } from "./urls.ts";

type Check = (text: string) => readonly string[];

class NamedFormat extends LibraryValue {
  readonly celType = FORMAT;
  readonly check: Check;
  /** For costs: the characters of the pattern behind it. */
  readonly maxRegexSize: number;

  constructor(check: Check, maxRegexSize: number) {
    super();
    this.check = check;
    this.maxRegexSize = maxRegexSize;
  }

  equals(other: unknown): boolean {
    return other === this;
  }
}

function byFormat(name: string, error: string): Check {
  const check = defined(formatCheck(name), "the format check");
  return (text) => (check(text) ? [] : [error]);
}

/** Lengths of the patterns that Kubernetes' formats have (go-openapi/strfmt). */
const [LABEL, SUBDOMAIN, LABEL_VALUE, URI, UUID, BASE64, DATE_TIME] = [
  30, 60, 40, 1104, 72, 82, 72,
] as const;

const FORMATS: Readonly<Record<string, NamedFormat>> = {
  dns1123Label: new NamedFormat(isDns1123Label, LABEL),
  dns1123Subdomain: new NamedFormat(isDns1123Subdomain, SUBDOMAIN),
  dns1035Label: new NamedFormat(isDns1035Label, LABEL),
  qualifiedName: new NamedFormat(isQualifiedName, SUBDOMAIN),
  dns1123LabelPrefix: new NamedFormat((text) => isDns1123Label(withoutDash(text)), LABEL),
  dns1123SubdomainPrefix: new NamedFormat(
    (text) => isDns1123Subdomain(withoutDash(text)),
    SUBDOMAIN,
  ),
  dns1035LabelPrefix: new NamedFormat((text) => isDns1035Label(withoutDash(text)), LABEL),
  labelValue: new NamedFormat(isLabelValue, LABEL_VALUE),
  uri: new NamedFormat(requestUri, URI),
  uuid: new NamedFormat(byFormat("uuid", "does not match the UUID format"), UUID),
  byte: new NamedFormat(byFormat("byte", "invalid base64"), BASE64),
  date: new NamedFormat(byFormat("date", "invalid date"), DATE_TIME),
  datetime: new NamedFormat(byFormat("datetime", "invalid datetime"), DATE_TIME),
};

/** As Go's url.ParseRequestURI. */
function requestUri(text: string): readonly string[] {
  if (parseUrl(text) !== undefined) return [];
  const why = text === "" ? "empty url" : "invalid URI for request";
  return [`parse ${JSON.stringify(text)}: ${why}`];
}

function withoutDash(text: string): string {
  return text.length > 1 && text.endsWith("-") ? `${text.slice(0, -2)}a` : text;
}

export function registerFormats(environment: Environment): void {
  const type = FORMAT.name;
  environment.type(FORMAT);
  for (const [name, named] of Object.entries(FORMATS))
    environment.function(`format.${name}(): ${type}`, () => named);
  environment
    .function(`format.named(string): optional<${type}>`, (name: string) =>
      Object.hasOwn(FORMATS, name) ? Optional.of(FORMATS[name]) : Optional.none,
    )
    .function(
      `${type}.validate(string): optional<list<string>>`,
      ({ check }: NamedFormat, text: string) => {
        const errors = check(text);
        return errors.length === 0 ? Optional.none : Optional.of([...errors]);
      },
    );
}
