/** The options for tokens of an identity provider. */
import { durationOption, stringOption } from "./option.ts";

export const tokenOptions = {
  "auth-jwt-user-claim": stringOption(
    "username",
    "The claim of an identity provider's tokens that names the user.",
  ),
  "auth-jwt-roles-claim": stringOption(
    "",
    "The claim of an identity provider's tokens that lists roles: a list, or a text with " +
      "blanks between. The user needs no record then. Empty: roles are those of the user in " +
      "the store.",
  ),
  "auth-jwt-audience": stringOption(
    "",
    "What the claim 'aud' of an identity provider's tokens must have among its values. " +
      "Empty: anything.",
  ),
  "auth-jwt-issuer": stringOption(
    "",
    "What the claim 'iss' of an identity provider's tokens must be. Empty: anything.",
  ),
  "auth-jwt-clock-skew": durationOption(
    0,
    "By how much the clock that tokens are made by may differ from this machine's, up to " + "5m.",
  ),
};
