import { i18n } from "../lib/i18n";
import type { Language } from "../lib/language";
import { retried } from "../lib/load";
import type { SpecWords } from "../lib/specWords";

/** The service describes the fields of a spec in English; the words of another language are loaded with this page. */
const WORDS: Readonly<Record<Language, (() => Promise<{ words: SpecWords }>) | null>> = {
  en: null,
  "zh-CN": () => import("../locales/zh-CN.fields"),
};

const load = WORDS[i18n.locale as Language];
// The form in English is better than none.
const loaded = load && await retried(load).catch(() => null);

/** The words of the form in the language that was chosen; null: the service's own. */
export const specWords = loaded?.words ?? null;
