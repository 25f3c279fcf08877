/**
 * Looks for a seed under which a lock lets two holders in.
 *
 *     node simulated-locks.js naive          prints a seed, and what happened
 *     node simulated-locks.js fenced 1000    finds none
 */
import { findSeed, type Program } from "@quorate/testing";
import { Account, work } from "./locks.ts";

/** Three clients with a lock each, under faults. */
export function lockProgram(isFenced: boolean): Program {
  return async ({ clients }) => {
    const account = new Account(isFenced);
    const done = await Promise.all(clients.map((client) => work(client, account, 10)));
    const total = done.reduce((sum, one) => sum + one, 0);
    if (account.balance !== total)
      throw new Error(`an update was lost: ${account.balance} of ${total}`);
  };
}

if (import.meta.main) {
  const [kind = "naive", count = "1000"] = process.argv.slice(2);
  const program = lockProgram(kind === "fenced");
  const found = await findSeed(program, { count: Number(count) });
  console.log(found?.message ?? `no failure under ${count} seeds`);
}
