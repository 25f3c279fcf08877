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
import type { CelEnvironment, CelOptional } from "../library.ts";

type Check = (text: string) => readonly string[];

class NamedFormat {
  readonly check: Check;

  constructor(check: Check) {
    this.check = check;
  }
}

function byFormat(name: string): Check {
  const check = defined(formatCheck(name), "the format check");
  return (text) => (check(text) ? [] : [`invalid ${name}`]);
}

const FORMATS: Readonly<Record<string, Check>> = {
  dns1123Label: isDns1123Label,
  dns1123Subdomain: isDns1123Subdomain,
  dns1035Label: isDns1035Label,
  qualifiedName: isQualifiedName,
  dns1123LabelPrefix: (text) => isDns1123Label(withoutDash(text)),
  dns1123SubdomainPrefix: (text) => isDns1123Subdomain(withoutDash(text)),
  dns1035LabelPrefix: (text) => isDns1035Label(withoutDash(text)),
  labelValue: isLabelValue,
  uri: byFormat("uri"),
  uuid: byFormat("uuid"),
  byte: byFormat("byte"),
  date: byFormat("date"),
  datetime: byFormat("datetime"),
};

function withoutDash(text: string): string {
  return text.length > 1 && text.endsWith("-") ? `${text.slice(0, -2)}a` : text;
}

class FormatNamespace {}

export function registerFormats(environment: CelEnvironment, optional: CelOptional): void {
  const type = "kubernetes.NamedFormat";
  environment
    .registerType(type, NamedFormat)
    .registerType("FormatNamespace", FormatNamespace)
    .registerConstant("format", "FormatNamespace", new FormatNamespace());
  for (const [name, check] of Object.entries(FORMATS)) {
    const named = new NamedFormat(check);
    environment.registerFunction(`FormatNamespace.${name}(): ${type}`, () => named);
  }
  environment
    .registerFunction(`FormatNamespace.named(string): optional<${type}>`, (_, name: string) =>
      Object.hasOwn(FORMATS, name) ? optional.of(new NamedFormat(FORMATS[name])) : optional.none(),
    )
    .registerFunction(
      `${type}.validate(string): optional<list<string>>`,
      ({ check }: NamedFormat, text: string) => {
        const errors = check(text);
        return errors.length === 0 ? optional.none() : optional.of([...errors]);
      },
    );
}
