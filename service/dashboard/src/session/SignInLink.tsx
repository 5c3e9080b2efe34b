import { Trans } from "@lingui/react/macro";
import { useMutation } from "@tanstack/react-query";

import { signIn } from "../api/session";
import { codeOf, takeCode } from "../lib/login";
import { Notice } from "../ui/Notice";

/** Asks whoever is signed in and has opened a sign-in link whose session is to count: nobody is changed unasked. */
export default function SignInLink({ name }: { name: string }) {
  // The page is loaded anew, so that nothing stays that was the other's.
  const login = useMutation({
    mutationFn: () => signIn({ code: codeOf(location.hash) ?? "" }),
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
