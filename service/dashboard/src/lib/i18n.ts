import { i18n, type Messages } from "@lingui/core";

import { KEY, type Language, languageOf, localeOf } from "./language";

/** English stands in the code; the catalogs of another language are loaded by those who read it. */
const CATALOGS: Readonly<Record<Language, (() => Promise<{ messages: Messages }>) | null>> = {
  en: null,
  "zh-CN": () => import("../locales/zh-CN"),
};

const language = languageOf(localStorage.getItem(KEY), navigator.languages);
const loaded = await CATALOGS[language]?.();
i18n.loadAndActivate({
  locale: language, locales: localeOf(language, navigator.languages), messages: loaded?.messages ?? {},
});

/** What texts are made by, in the language that was chosen: whatever has texts is evaluated after this module. */
export { i18n };
