/** How answers about downgrades are printed. */
import { DowngradeResponse } from "@quorate/proto";
import { type Form, headerJson, present } from "./form.ts";

/** @param action what was asked for */
export function downgradeForm(action: string): Form<DowngradeResponse> {
  return {
    simple: ({ version }) => `Downgrade ${action} success, cluster version ${version}\n`,
    json: ({ header, version }) => ({ header: headerJson(header), version: present(version) }),
    protobuf: (answer) => DowngradeResponse.encode(answer),
  };
}
