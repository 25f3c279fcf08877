/** What the documents of both OpenAPI versions have in common. */

export const INFO = { title: "Kubernetes", version: "unversioned" };
/** Of the documents of custom kinds, in version 3. */
export const CUSTOM_INFO = { title: "Kubernetes CRD Swagger", version: "v0.1.0" };
/** Descriptions of responses by their status. */
export const CODES: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
};
export const SECURITY_SCHEMES = {
  BearerToken: {
    type: "apiKey",
    description: "A bearer token.",
    name: "authorization",
    in: "header",
  },
};
export const SECURITY = [{ BearerToken: [] }];
