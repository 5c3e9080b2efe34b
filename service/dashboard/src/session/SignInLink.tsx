import { Trans } from "@lingui/react/macro";
import { useMutation } from "@tanstack/react-query";

import { explain } from "../api/client";
import { signIn } from "../api/session";
import { codeOf, takeCode } from "../lib/login";
import { Notice } from "../ui/Notice";

/** Asks whoever is signed in and has opened a sign-in link whose session is to count: nobody is changed unasked. */
export default function SignInLink({ name }: { name: string }) {
  // The page is loaded anew, so that nothing stays that was the other's.
  const login = useMutation({
    mutationFn: async () => {
      try {
        await signIn({ code: codeOf(location.hash) ?? "" });
      } catch (error) {
        // A refused code ends no session, as a refused request elsewhere tells that this one has ended.
        throw new Error(explain(error), { cause: error });
      }
    },
    onSuccess: () => {
      takeCode();
      location.reload();
    },
  });
  return (
    <div className="announcement" role="status">
      <Trans>You are signed in as {name}, and this link signs in anew, perhaps as somebody else.</Trans>
      {" "}
      <button type="button" className="button small" disabled={login.isPending} onClick={() => login.mutate()}>
        <Trans>Sign in by the link</Trans>
      </button>
      {" "}
      <button type="button" className="button small ghost" onClick={() => takeCode()}><Trans>Stay {name}</Trans></button>
      <Notice error={login.error} />
    </div>
  );
}
