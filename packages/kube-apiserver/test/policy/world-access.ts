/** Access as a server has it: RBAC, certificates, and tokens of its own service accounts. */
import { newServiceAccountKeyPem, serviceAccountKeys } from "../../node/service-account-keys.ts";
import { Access } from "../../src/authz/access.ts";
import type { World } from "./world.ts";

const key = await newServiceAccountKeyPem();

export function accessOf(world: World): Access {
  return new Access(
    {
      modes: ["RBAC"],
      allowAnonymous: true,
      clientCertificates: true,
      staticTokens: undefined,
      serviceAccounts: {
        issuers: ["https://issuer.example"],
        audiences: ["https://issuer.example"],
        maxExpirationSeconds: 0,
        keys: serviceAccountKeys({ path: "sa.key", pem: key }),
      },
    },
    world,
  );
}
