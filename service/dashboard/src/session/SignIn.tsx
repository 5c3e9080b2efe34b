import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import { type SubmitEvent, useEffect, useState } from "react";

import { signIn, useSignInWays } from "../api/session";
import { takeCode } from "../lib/login";
import { Command } from "../ui/Command";
import { LanguageSwitch } from "../ui/LanguageSwitch";
import { Notice } from "../ui/Notice";

export function SignIn() {
  const cache = useQueryClient();
  const [token, setToken] = useState("");
  const login = useMutation({ mutationFn: signIn, onSuccess: () => cache.resetQueries() });
  const { mutate } = login;
  const provider = useSignInWays().data?.oidc ?? null;
  const host = provider === null ? "" : new URL(provider).host;
  // Also of a link that is opened here, where it changes but the end of the address and loads nothing anew.
  const hash = useLocation({ select: (location) => location.hash });
  useEffect(() => {
    const code = takeCode();
    if (code !== null) mutate({ code });
  }, [hash, mutate]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    mutate({ token: token.trim() });
  };
  return (
    <main className="gate">
      <form className="gate-card" onSubmit={submit}>
        <img src="/mark.svg" alt="" width="52" height="52" />
        <h1>TorchYard</h1>
        {provider !== null && (
          <a className="button primary wide" href="/api/v1/session/oidc"><Trans>Sign in with {host}</Trans></a>
        )}
        <p className="soft"><Trans>Sign in with a token of yours. This browser keeps a session; the token is not stored.</Trans></p>
        <label htmlFor="token"><Trans>Token</Trans></label>
        <input
          id="token"
          type="password"
          autoComplete="current-password"
          spellCheck={false}
          placeholder="ty_…"
          value={token}
          onChange={(change) => setToken(change.target.value)}
          autoFocus
          required
        />
        <Notice error={login.error} />
        <button type="submit" className="button primary wide" disabled={login.isPending}><Trans>Sign in</Trans></button>
        <p className="faint"><Trans>On the machine that runs the service this shows yours:</Trans></p>
        <Command text="yard token show" />
        <p className="gate-language"><LanguageSwitch /></p>
      </form>
    </main>
  );
}
