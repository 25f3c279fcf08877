/** Plain HTTP requests to members under test, and what their metrics say. */
import { Agent, request } from "undici";
import type { TestCluster } from "./cluster.ts";
import type { TestMember } from "./member.ts";

/** Status and body of a GET. */
export async function get(
  cluster: TestCluster,
  member: TestMember,
  path: string,
): Promise<{ status: number; body: string }> {
  const agent = new Agent({ connect: { ...cluster.identity } });
  try {
    const answer = await request(`${member.clientUrl}${path}`, {
      dispatcher: agent,
      signal: AbortSignal.timeout(60_000),
    });
    return { status: answer.statusCode, body: await answer.body.text() };
  } finally {
    await agent.destroy();
  }
}

/** The sum over all labels of one metric of the member's; 0 if it shows none. */
export async function metric(
  cluster: TestCluster,
  member: TestMember,
  name: string,
): Promise<number> {
  const { body } = await get(cluster, member, "/metrics");
  let sum = 0;
  for (const line of body.split("\n")) {
    const match = /^([\w:]+)(?:\{.*\})? (\S+)$/.exec(line);
    if (match?.[1] === name) sum += Number(match[2]);
  }
  return sum;
}
