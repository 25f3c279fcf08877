/** TLS servers of the client and peer ports, which follow their source of options. */
import {
  createSecureContext,
  createServer,
  type TlsOptions as NodeTlsOptions,
  type SecureContext,
  type SecureContextOptions,
  type Server,
} from "node:tls";
import { serverTlsOptions } from "./tls.ts";
import type { TlsSource } from "./tls-source.ts";

/** Sessions of one context are resumed by it alone: each has keys of its own for tickets. */
const SESSION_ID_CONTEXT = "quorate";

/**
 * Opens a TLS server whose new connections use the options that its source has at the time.
 * @returns the server, and the function that stops following the source
 */
export function followingTlsServer(
  source: TlsSource,
  alpnProtocols: string[],
  more: NodeTlsOptions,
): { readonly server: Server; readonly forget: () => void } {
  const optionsNow = () => ({
    ...serverTlsOptions(source.current, alpnProtocols),
    honorCipherOrder: true,
    sessionIdContext: SESSION_ID_CONTEXT,
  });
  const first = optionsNow();
  const server = createServer({ ...first, ...more });
  setContext(server, first);
  const forget = source.onChange(() => {
    const options = optionsNow();
    // The context that this makes is replaced: it needs no authorities, which take the most time.
    server.setSecureContext({ ...options, ca: [] });
    setContext(server, options);
  });
  return { server, forget };
}

/**
 * Node's server makes its context of a list of options that lacks allowPartialTrustChain (Node 26,
 * lib/internal/tls/wrap.js). Where a later one has no such property, intermediates are no anchors.
 */
function setContext(server: Server, options: SecureContextOptions): void {
  (server as Server & { _sharedCreds?: SecureContext })._sharedCreds = createSecureContext(options);
}
