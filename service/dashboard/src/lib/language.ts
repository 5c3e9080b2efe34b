/** The languages of the dashboard, each by its own name. */
export const LANGUAGES = [{ key: "en", label: "English" }, { key: "zh-CN", label: "简体中文" }] as const;

export type Language = (typeof LANGUAGES)[number]["key"];

/** Where a browser keeps the language that was chosen in it. */
export const KEY = "torchyard-language";

/** The language that was chosen in a browser, else the first that it prefers and that there is. */
export function languageOf(chosen: string | null, preferred: readonly string[]): Language {
  const all = LANGUAGES.map(({ key }) => key);
  const found = preferred.map((tag) => all.find((one) => isOf(tag, one))).find((one) => one !== undefined);
  return all.find((one) => one === chosen) ?? found ?? "en";
}

/** The variant of a language that a browser prefers, such as `en-GB`, which writes dates in its way. */
export function localeOf(language: Language, preferred: readonly string[]): string {
  return preferred.find((tag) => isOf(tag, language)) ?? language;
}

/** Whether a tag such as `zh-SG` names the same language, in the same script. */
function isOf(tag: string, language: Language): boolean {
  const [one, other] = [fullTag(tag), fullTag(language)];
  return one !== null && one.language === other?.language && one.script === other.script;
}

function fullTag(tag: string): Intl.Locale | null {
  try {
    return new Intl.Locale(tag).maximize();
  } catch {
    return null;
  }
}
