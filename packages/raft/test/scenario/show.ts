/** How scenarios print what they see. */
import { raftpb, toLatin1 } from "@quorate/proto";
import { confChangeOf, type ProgressStatus, type Ready, type Status } from "../../index.ts";

const typeNames = Object.fromEntries(
  Object.entries(raftpb.MessageType).map(([name, value]) => [value, name]),
);

export function showConfChange(change: raftpb.ConfChangeV2): string {
  const kinds = ["v", "r", "u", "l"];
  const transition = ["", "implicit ", "explicit "][change.transition];
  return change.changes.length === 0
    ? `${transition}leave`
    : transition + change.changes.map((one) => `${kinds[one.type]}${one.nodeId}`).join(" ");
}

export function showEntry(entry: raftpb.Entry): string {
  const change = confChangeOf(entry);
  const data = toLatin1(entry.data);
  const what =
    change !== undefined
      ? `conf ${showConfChange(change)}`
      : data.length > 20
        ? `${data.slice(0, 3)}.. ${data.length} bytes`
        : data;
  return `${entry.index}/${entry.term}${what === "" ? "" : ` ${what}`}`;
}

export function showConfState(conf: raftpb.ConfState): string {
  const parts = [`voters ${conf.voters.join(" ")}`];
  if (conf.votersOutgoing.length > 0)
    parts.push(`leaving ${conf.votersOutgoing.join(" ")}${conf.autoLeave ? " automatically" : ""}`);
  if (conf.learners.length > 0) parts.push(`learners ${conf.learners.join(" ")}`);
  if (conf.learnersNext.length > 0) parts.push(`learners next ${conf.learnersNext.join(" ")}`);
  return parts.join(", ");
}

export function showMessage(message: raftpb.Message): string {
  const { MsgReadIndex, MsgReadIndexResp, MsgProp } = raftpb.MessageType;
  const parts = [`${message.from}->${message.to} ${typeNames[message.type]}`];
  if (message.term > 0) parts.push(`term ${message.term}`);
  if (message.index > 0 || message.logTerm > 0)
    parts.push(`at ${message.index}/${message.logTerm}`);
  if (message.reject) parts.push("reject");
  if (message.rejectHint > 0) parts.push(`hint ${message.rejectHint}`);
  if (message.commit > 0) parts.push(`commit ${message.commit}`);
  if (message.snapshot !== undefined) {
    const { index, term, confState } = message.snapshot.metadata;
    parts.push(`snapshot ${index}/${term} (${showConfState(confState)})`);
  }
  const bare =
    message.type === MsgReadIndex || message.type === MsgReadIndexResp || message.type === MsgProp;
  const show = (entry: raftpb.Entry): string =>
    bare ? showEntry(entry).replace("0/0 ", "") : showEntry(entry);
  if (message.entries.length > 6) {
    parts.push(
      `[${show(message.entries[0])}, .., ${show(message.entries[message.entries.length - 1])}]`,
    );
  } else if (message.entries.length > 0) {
    parts.push(`[${message.entries.map(show).join(", ")}]`);
  }
  const { MsgHeartbeat, MsgHeartbeatResp } = raftpb.MessageType;
  if (
    message.context.length === 16 &&
    (message.type === MsgHeartbeat || message.type === MsgHeartbeatResp)
  )
    parts.push(`round ${message.context[7]} tick ${message.context[15]}`);
  else if (message.context.length > 0) parts.push(`context ${toLatin1(message.context)}`);
  return parts.join(" ");
}

export function showReady(ready: Ready): string[] {
  const lines = [`ready ${ready.number}${ready.mustSync ? ", must sync" : ""}`];
  if (ready.softState !== undefined)
    lines.push(`  ${ready.softState.role}, leader ${ready.softState.leader}`);
  if (ready.snapshot !== undefined) {
    const { index, term, confState } = ready.snapshot.metadata;
    lines.push(`  write snapshot ${index}/${term} (${showConfState(confState)})`);
  }
  for (const entry of ready.entries) lines.push(`  write ${showEntry(entry)}`);
  if (ready.hardState !== undefined) {
    const { term, vote, commit } = ready.hardState;
    lines.push(`  write term ${term}, vote ${vote}, commit ${commit}`);
  }
  for (const message of ready.messages) lines.push(`  send ${showMessage(message)}`);
  for (const message of ready.messagesAfterSync)
    lines.push(`  send after sync ${showMessage(message)}`);
  for (const entry of ready.committed) lines.push(`  apply ${showEntry(entry)}`);
  for (const { context, index } of ready.readStates)
    lines.push(`  read ${toLatin1(context)} at ${index}`);
  return lines;
}

export function showStatus(status: Status): string {
  const parts = [
    `${status.id} ${status.role}`,
    `term ${status.term}`,
    `vote ${status.vote}`,
    `leader ${status.leader}`,
  ];
  if (status.leadTransferee !== 0n) parts.push(`hands over to ${status.leadTransferee}`);
  parts.push(
    `log ${status.firstIndex}..${status.lastIndex}`,
    `stable ${status.stableIndex}`,
    `commit ${status.commit}`,
  );
  parts.push(`applied ${status.applied}`, showConfState(status.confState));
  return parts.join(", ");
}

export function showProgress(one: ProgressStatus): string {
  const parts = [`${one.id} ${one.state}`, `match ${one.match}`, `next ${one.next}`];
  if (one.isLearner) parts.push("learner");
  if (one.paused) parts.push("paused");
  if (!one.recentActive) parts.push("inactive");
  if (one.inflightMessages > 0)
    parts.push(`in flight ${one.inflightMessages} messages, ${one.inflightBytes} bytes`);
  if (one.pendingSnapshot > 0) parts.push(`snapshot ${one.pendingSnapshot}`);
  return parts.join(", ");
}
