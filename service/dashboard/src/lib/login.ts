const LOGIN = /^#login=(.+)$/;

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
