/** How long after a failure a file is asked for again, in milliseconds. */
const AGAIN_AFTER_MS = 500;

/** A part of the dashboard that could not be loaded: the service is away, or has another version's files. */
export class NotLoaded extends Error {
  constructor(readonly updated: boolean, cause: unknown) {
    super("a part of the page could not be loaded", { cause });
    this.name = "NotLoaded";
  }
}

/** What the browser does for `retried`. */
export interface Browser {
  wait: (ms: number) => Promise<unknown>;
  reloadStyles: () => Promise<void>;
  importUrl: (url: string) => Promise<unknown>;
  isUpdated: () => Promise<boolean>;
}

const BROWSER: Browser = {
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  reloadStyles,
  importUrl: (url) => import(/* @vite-ignore */ url) as Promise<unknown>,
  isUpdated,
};

/**
 * Loads a part by a dynamic import, and once more where that fails; rejects with `NotLoaded`.
 *
 * A browser that remembers a failed import of an address (Chromium before 2026, Firefox before 155) answers the second
 * without a request; another query makes it another address.
 */
export async function retried<Module>(load: () => Promise<Module>, browser: Browser = BROWSER): Promise<Module> {
  try {
    return await load();
  } catch {
    await browser.wait(AGAIN_AFTER_MS);
  }
  try {
    await browser.reloadStyles();
    return await load().catch((error: unknown) => {
      const url = importedUrl(error);
      if (url === null) throw error;
      return browser.importUrl(`${url}?again`) as Promise<Module>;
    });
  } catch (error) {
    throw new NotLoaded(await browser.isUpdated(), error);
  }
}

/** The address of a script that could not be imported, where the browser names it (Safari does not). */
export function importedUrl(error: unknown): string | null {
  const message = error instanceof Error ? error.message : "";
  return /dynamically imported module: (\S+\.js)$/.exec(message)?.[1] ?? null;
}

/** The script that a page begins with; its name carries the hash of what was built. */
export function entryOf(html: string): string | null {
  return /<script type="module"[^>]* src="([^"]+)"/.exec(html)?.[1] ?? null;
}

/** The links of the page to styles that could not be loaded. */
const failedStyles = new Set<HTMLLinkElement>();

/** Notes from now on which styles of the page cannot be loaded, for `retried`. */
export function noteFailedStyles(page: Document): void {
  page.addEventListener("error", ({ target }) => {
    if (target instanceof HTMLLinkElement && target.rel === "stylesheet") failedStyles.add(target);
  }, { capture: true });
}

/** Loads each of the styles that failed once more, where it stood: Vite asks for a part's styles only once. */
async function reloadStyles(): Promise<void> {
  const links = [...failedStyles];
  failedStyles.clear();
  await Promise.all(links.map((link) => new Promise((resolve, reject) => {
    const again = link.cloneNode() as HTMLLinkElement;
    again.addEventListener("load", resolve);
    again.addEventListener("error", () => {
      reject(new Error(`no styles at ${again.href}`));
    });
    link.replaceWith(again);
  })));
}

/** Whether the service has another dashboard than this page was loaded from; false where it does not answer. */
async function isUpdated(): Promise<boolean> {
  const own = document.querySelector("script[type=module][src]")?.getAttribute("src");
  try {
    const answer = await fetch("/", { cache: "no-cache" });
    const entry = answer.ok ? entryOf(await answer.text()) : null;
    return entry !== null && entry !== own;
  } catch {
    return false;
  }
}
