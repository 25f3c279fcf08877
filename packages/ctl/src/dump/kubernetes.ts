/** Records of Kubernetes' storage as YAML documents, for --decode k8s. */
import { storedValueText } from "@quorate/kube-storage";
import { KeyValue } from "@quorate/proto";

/**
 * The document of a record.
 * @param record an encoded KeyValue
 * @param heading the text of a comment above it; empty for none
 * @returns its text with a line end. Rejects with WireError for bytes that are no record
 */
export async function kubernetesDocument(record: Uint8Array, heading: string): Promise<string> {
  const { value, modRevision } = KeyValue.decode(record);
  const text = await storedValueText(value, modRevision);
  return heading === "" ? text : `# ${heading}\n${text}`;
}
