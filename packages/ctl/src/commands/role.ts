import type { Command, CommandBody } from "@quorate/cli";
import { badArguments } from "@quorate/cli";
import { authpb, fromUtf8 } from "@quorate/proto";
import { withClient } from "../connect/globals.ts";
import { onlyArgument, printAnswer } from "../connect/one-call.ts";
import { permissionRange, rangeFlags } from "../permissions/range-text.ts";
import { widthWarnings } from "../permissions/wide-grant.ts";
import {
  roleAddForm,
  roleDeleteForm,
  roleGetForm,
  roleGrantForm,
  roleListForm,
  roleRevokeForm,
} from "../printers/auth-forms.ts";
import { printerOf } from "../printers/choose.ts";

const addCommand: Command = {
  use: "add <role name>",
  short: "Adds a role",
  async run(invocation) {
    const role = onlyArgument(invocation, "role add command requires role name as its argument");
    await printAnswer(invocation, roleAddForm(role), (client) => client.auth.roleAdd(role));
  },
};

const deleteCommand: Command = {
  use: "delete <role name>",
  short: "Deletes a role",
  async run(invocation) {
    const role = onlyArgument(invocation, "role delete command requires role name as its argument");
    await printAnswer(invocation, roleDeleteForm(role), (client) => client.auth.roleDelete(role));
  },
};

const getCommand: Command = {
  use: "get <role name>",
  short: "Prints what a role may read and write",
  async run(invocation) {
    const role = onlyArgument(invocation, "role get command requires role name as its argument");
    const printer = printerOf(invocation);
    await withClient(invocation, async ({ client, build }) => {
      printer.form(roleGetForm(role, build.prefixEnd), await client.auth.roleGet(role));
    });
  },
};

const listCommand: Command = {
  use: "list",
  short: "Lists all roles",
  async run(invocation) {
    if (invocation.args.length > 0) throw badArguments("role list command requires no arguments");
    await printAnswer(invocation, roleListForm, (client) => client.auth.roleList());
  },
};

const permissionTypes: ReadonlyMap<string, number> = new Map(
  Object.entries(authpb.Permission_Type),
);

const grantCommand: Command = {
  use: "grant-permission [options] <role name> <permission type> <key> [endkey]",
  short: "Lets a role read or write a key or a range of keys",
  long: "Lets a role read or write a key or a range of keys. The permission type is read, write or readwrite.",
  flags: rangeFlags,
  async run(invocation) {
    const [role, kind, key, end] = invocation.args;
    if (role === undefined || kind === undefined || key === undefined) {
      throw badArguments(
        "role grant command requires role name, permission type, and key [endkey] as its argument",
      );
    }
    const permType = permissionTypes.get(kind.toUpperCase());
    if (permType === undefined) throw badArguments(`invalid permission type: ${kind}`);
    const printer = printerOf(invocation);
    await withClient(invocation, async ({ client, build: { prefixEnd } }) => {
      const granted = permissionRange(invocation, [key, end], prefixEnd);
      const answer = await client.auth.roleGrantPermission(role, { permType, ...granted });
      printer.form(roleGrantForm(role), answer);
      for (const warning of widthWarnings(granted, prefixEnd))
        invocation.io.stderr(`Warning: ${warning}\n`);
    });
  },
};

const revokeCommand: Command = {
  use: "revoke-permission <role name> <key> [endkey]",
  short: "Takes back what a role may do with a key or a range of keys",
  flags: rangeFlags,
  async run(invocation) {
    const [role, start, end] = invocation.args;
    if (role === undefined || start === undefined) {
      throw badArguments(
        "role revoke-permission command requires role name and key [endkey] as its argument",
      );
    }
    const printer = printerOf(invocation);
    await withClient(invocation, async ({ client, build }) => {
      const { key, rangeEnd } = permissionRange(invocation, [start, end], build.prefixEnd);
      const answer = await client.auth.roleRevokePermission(role, key, rangeEnd);
      printer.form(roleRevokeForm(role, fromUtf8(start), rangeEnd), answer);
    });
  },
};

export const roleCommand: CommandBody = {
  commands: [addCommand, deleteCommand, getCommand, grantCommand, listCommand, revokeCommand],
};
