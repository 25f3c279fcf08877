/** The blocks of a PEM file (RFC 7468), found in one pass, however many do not end. */

export interface PemBlock {
  /** Such as CERTIFICATE. */
  readonly label: string;
  /** From the first dash to the last. */
  readonly text: string;
  /** What stands between the two lines: base64. */
  readonly body: string;
}

const BEGIN = "-----BEGIN ";
const DASHES = "-----";

/**
 * The complete blocks of a text, or those with one label. Text around them is ignored, and a
 * beginning before another one.
 */
export function pemBlocks(text: string, label?: string): PemBlock[] {
  const blocks: PemBlock[] = [];
  for (const piece of text.split(BEGIN).slice(1)) {
    const labelEnd = piece.indexOf(DASHES);
    const found = piece.slice(0, Math.max(0, labelEnd));
    if (labelEnd === -1 || (label !== undefined && found !== label)) continue;
    const last = `-----END ${found}${DASHES}`;
    const endAt = piece.indexOf(last, labelEnd + DASHES.length);
    if (endAt === -1) continue;
    const body = piece.slice(labelEnd + DASHES.length, endAt);
    blocks.push({ label: found, text: BEGIN + piece.slice(0, endAt + last.length), body });
  }
  return blocks;
}
