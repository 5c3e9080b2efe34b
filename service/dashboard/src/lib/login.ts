const LOGIN = /^#login=(.+)$/;

/** Takes a one-time code out of the address, so that it stays in no history. */
export function takeCode(): string | null {
  const code = codeOf(location.hash);
  if (code !== null) history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}

/** The one-time code of a sign-in link, by the part of its address from `#` on; one that was cut as it is. */
export function codeOf(hash: string): string | null {
  const code = LOGIN.exec(hash)?.[1] ?? null;
  if (code === null) return null;
  try {
    return decodeURIComponent(code);
  } catch {
    return code;
  }
}
