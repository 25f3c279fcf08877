import { transportContract } from "@quorate/transport/testing";
import { makeAuthority, makeLocalCertificate } from "../../../test/support/certs.ts";
import { RealNetwork } from "./helpers/network.ts";

transportContract("HTTP/2 in plain text", async () => new RealNetwork());

const CA = makeAuthority();
const PEER = makeLocalCertificate(CA, "peer");
const TLS = {
  certPem: PEER.certPem,
  keyPem: PEER.keyPem,
  trustedCaPem: CA.certPem,
  clientCertAuth: true,
};

transportContract("HTTP/2 over mutual TLS", async () => new RealNetwork(TLS));
