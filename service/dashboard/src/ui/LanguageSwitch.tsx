import { otherLanguages, switchLanguage } from "./languages";

/** A button for each language but the one in use, by its own name, so that those find it who read no other. */
export function LanguageSwitch() {
  return otherLanguages().map(({ key, label }) => (
    <button key={key} type="button" lang={key} className="button small ghost" onClick={() => switchLanguage(key)}>
      {label}
    </button>
  ));
}
