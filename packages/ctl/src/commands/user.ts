import type { Command, CommandBody, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, type Io, readAll, textFlag } from "@quorate/cli";
import { toUtf8 } from "@quorate/proto";
import { withClient } from "../connect/globals.ts";
import { onlyArgument, printAnswer } from "../connect/one-call.ts";
import {
  passwordForm,
  roleGetForm,
  userAddForm,
  userDeleteForm,
  userGetForm,
  userGrantForm,
  userListForm,
  userRevokeForm,
} from "../printers/auth-forms.ts";
import { printerOf } from "../printers/choose.ts";

const interactiveFlag = boolFlag(
  "ask for the password on the terminal; false to read it from standard input",
  "true",
);

/** A new password: asked for twice, or the first word of standard input. Throws Exit. */
async function newPassword({ flags, io }: Invocation, user: string): Promise<string> {
  if (!flags.bool("interactive")) {
    const [line = ""] = toUtf8(await readAll(io)).split("\n", 1);
    return /\S+/.exec(line)?.[0] ?? "";
  }
  const first = await ask(io, `Password of ${user}: `);
  if (first === "") throw badArguments("empty password");
  if ((await ask(io, `Type password of ${user} again for confirmation: `)) !== first) {
    throw badArguments("given passwords are different");
  }
  return first;
}

async function ask(io: Io, prompt: string): Promise<string> {
  try {
    return await io.askPassword(prompt);
  } catch (error) {
    throw badArguments(`failed to ask password: ${(error as Error).message}`);
  }
}

/**
 * Name and password of the user to add; no password for one who comes with a certificate. Throws
 * Exit.
 */
async function newUser(
  invocation: Invocation,
): Promise<{ name: string; password: string | undefined }> {
  const { flags } = invocation;
  const text = onlyArgument(invocation, "user add command requires user name as its argument");
  if (flags.bool("no-password")) return { name: text, password: undefined };
  const given = flags.string("new-user-password");
  if (given !== "") return { name: text, password: given };
  const colon = text.indexOf(":");
  if (colon < 0) return { name: text, password: await newPassword(invocation, text) };
  if (colon === 0) throw badArguments("empty user name is not allowed");
  return { name: text.slice(0, colon), password: text.slice(colon + 1) };
}

const addCommand: Command = {
  use: "add <user name or user:password> [options]",
  short: "Adds a user",
  flags: {
    interactive: interactiveFlag,
    "new-user-password": textFlag("the user's password"),
    "no-password": boolFlag("add a user who can only come with a certificate of this name"),
  },
  async run(invocation) {
    const printer = printerOf(invocation);
    const { name, password } = await newUser(invocation);
    printer.form(
      userAddForm(name),
      await withClient(invocation, ({ client }) => client.auth.userAdd(name, password)),
    );
  },
};

const deleteCommand: Command = {
  use: "delete <user name>",
  short: "Deletes a user",
  async run(invocation) {
    const user = onlyArgument(invocation, "user delete command requires user name as its argument");
    await printAnswer(invocation, userDeleteForm(user), (client) => client.auth.userDelete(user));
  },
};

const getCommand: Command = {
  use: "get <user name> [options]",
  short: "Prints the roles of a user",
  flags: {
    detail: boolFlag("print what the roles may read and write"),
  },
  async run(invocation) {
    const user = onlyArgument(invocation, "user get command requires user name as its argument");
    const printer = printerOf(invocation);
    await withClient(invocation, async ({ client, build }) => {
      const answer = await client.auth.userGet(user);
      if (!invocation.flags.bool("detail")) {
        printer.form(userGetForm(user), answer);
        return;
      }
      invocation.io.stdout(`User: ${user}\n`);
      for (const role of answer.roles) {
        invocation.io.stdout("\n");
        printer.form(roleGetForm(role, build.prefixEnd), await client.auth.roleGet(role));
      }
    });
  },
};

const listCommand: Command = {
  use: "list",
  short: "Lists all users",
  async run(invocation) {
    if (invocation.args.length > 0) throw badArguments("user list command requires no arguments");
    await printAnswer(invocation, userListForm, (client) => client.auth.userList());
  },
};

const passwordCommand: Command = {
  use: "passwd <user name> [options]",
  short: "Changes the password of a user",
  flags: { interactive: interactiveFlag },
  async run(invocation) {
    const user = onlyArgument(invocation, "user passwd command requires user name as its argument");
    const printer = printerOf(invocation);
    const password = await newPassword(invocation, user);
    printer.form(
      passwordForm,
      await withClient(invocation, ({ client }) => client.auth.userChangePassword(user, password)),
    );
  },
};

/** User and role. Throws Exit. */
function userAndRole({ args }: Invocation, usage: string): readonly [user: string, role: string] {
  const [user, role] = args;
  if (user === undefined || role === undefined || args.length > 2) throw badArguments(usage);
  return [user, role];
}

const grantCommand: Command = {
  use: "grant-role <user name> <role name>",
  short: "Grants a user a role",
  async run(invocation) {
    const [user, role] = userAndRole(
      invocation,
      "user grant command requires user name and role name as its argument",
    );
    await printAnswer(invocation, userGrantForm(user, role), (client) =>
      client.auth.userGrantRole(user, role),
    );
  },
};

const revokeCommand: Command = {
  use: "revoke-role <user name> <role name>",
  short: "Takes a role from a user",
  async run(invocation) {
    const [user, role] = userAndRole(
      invocation,
      "user revoke-role requires user name and role name as its argument",
    );
    await printAnswer(invocation, userRevokeForm(user, role), (client) =>
      client.auth.userRevokeRole(user, role),
    );
  },
};

export const userCommand: CommandBody = {
  commands: [
    addCommand,
    deleteCommand,
    getCommand,
    grantCommand,
    listCommand,
    passwordCommand,
    revokeCommand,
  ],
};
