import { i18n } from "../lib/i18n";
import { KEY, type Language, LANGUAGES } from "../lib/language";

/** The languages that the page can be switched to. */
export function otherLanguages() {
  return LANGUAGES.filter(({ key }) => key !== i18n.locale);
}

/** Takes another language from now on, in this browser; the page begins anew with it. */
export function switchLanguage(language: Language): void {
  localStorage.setItem(KEY, language);
  location.reload();
}
