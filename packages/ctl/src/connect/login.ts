/** Logging in before the first call, as etcdctl's client does when it is made. */

import { Exit, ExitCode, type Io } from "@quorate/cli";
import type { Client, ClientError } from "@quorate/client";
import { GrpcCode } from "@quorate/proto";
import { asExit } from "./failed-call.ts";

/**
 * Logs in where the flags name a user. Without users at the server nothing is asked.
 * @param ending "any": every failure ends the program with the code of a bad connection; "refusal":
 *   a refused password does, and ClientError is thrown where no member responds
 * @throws Exit
 */
export async function logIn(client: Client, io: Io, ending: "any" | "refusal"): Promise<void> {
  try {
    await client.login();
  } catch (error) {
    const { grpcCode } = error as ClientError;
    const isSilent = grpcCode === GrpcCode.DeadlineExceeded || grpcCode === GrpcCode.Unavailable;
    if (isSilent && ending === "refusal") throw error;
    const exit = asExit(error, io);
    throw exit instanceof Exit ? new Exit(ExitCode.badConnection, exit.message) : exit;
  }
}
