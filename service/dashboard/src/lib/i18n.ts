import { i18n, type Messages } from "@lingui/core";

import { KEY, type Language, languageOf, localeOf } from "./language";
import { retried } from "./load";

/** English stands in the code; the catalogs of another language are loaded by those who read it. */
const CATALOGS: Readonly<Record<Language, (() => Promise<{ messages: Messages }>) | null>> = {
  en: null,
  "zh-CN": () => import("../locales/zh-CN"),
};

const language = languageOf(localStorage.getItem(KEY), navigator.languages);
const catalog = CATALOGS[language];
// The page in English is better than none.
const loaded = catalog && await retried(catalog).catch(() => null);
i18n.loadAndActivate({
  locale: language, locales: localeOf(language, navigator.languages), messages: loaded?.messages ?? {},
});

/** What texts are made by, in the language that was chosen: whatever has texts is evaluated after this module. */
export { i18n };
