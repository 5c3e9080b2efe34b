import { i18n } from "@lingui/core";

import type { Language } from "./language";
import { retried } from "./load";

type InWords = (body: unknown) => unknown;

/** The service refuses in English; the words of another language are loaded when first something is refused. */
const WORDS: Readonly<Record<Language, (() => Promise<{ inWords: InWords }>) | null>> = {
  en: null,
  "zh-CN": () => import("../locales/zh-CN.problems"),
};

/** Problem details in a language; as they are in English, and in whatever other form. */
export async function inLanguage(body: unknown, locale = i18n.locale): Promise<unknown> {
  const load = WORDS[locale as Language];
  // A refusal in English is better than none.
  const loaded = load && await retried(load).catch(() => null);
  return loaded ? loaded.inWords(body) : body;
}
