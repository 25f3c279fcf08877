/** Helpers of commands that make one call and print its response. */

import type { Invocation } from "@quorate/cli";
import { badArguments } from "@quorate/cli";
import type { Client } from "@quorate/client";
import type { ResponseHeader } from "@quorate/proto";
import { printerOf } from "../printers/choose.ts";
import type { Form } from "../printers/form.ts";
import { withClient } from "./globals.ts";

/** The only argument. Throws Exit with `usage` if there is not exactly one. */
export function onlyArgument({ args }: Invocation, usage: string): string {
  const [only, more] = args;
  if (only === undefined || more !== undefined) throw badArguments(usage);
  return only;
}

/**
 * Makes a call and prints its response. Throws Exit; for an unknown output format before the call.
 */
export async function printAnswer<T extends { readonly header: ResponseHeader | undefined }>(
  invocation: Invocation,
  form: Form<T>,
  call: (client: Client) => Promise<T>,
): Promise<void> {
  const printer = printerOf(invocation);
  printer.form(form, await withClient(invocation, ({ client }) => call(client)));
}
