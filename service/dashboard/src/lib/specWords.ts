import type { FormField } from "./schema";

/** The words of a spec's form in a language that the service does not describe it in. */
export interface SpecWords {
  /** What fields are called, by path, or by name where that means the same everywhere. */
  labels: Readonly<Record<string, string>>;
  /** What values that are chosen mean. */
  options: Readonly<Record<string, string>>;
  /** What fields and variants are, by the service's own text. */
  helps: Readonly<Record<string, string>>;
}

/** A field in those words, with the name that YAML and help texts know it by; in its own where there are none. */
export function inWords(field: FormField, words: SpecWords): FormField {
  const { labels, options, helps } = words;
  const name = field.path.at(-1) ?? "";
  const called = labels[field.path.join(".")] ?? labels[name];
  const said = {
    label: called === undefined ? field.label : `${called} (${name})`,
    help: helps[field.help] ?? field.help,
  };
  const all = (fields: readonly FormField[]) => fields.map((each) => inWords(each, words));
  switch (field.kind) {
    case "group": return { ...field, ...said, fields: all(field.fields) };
    case "variant": {
      const variants = field.variants.map((one) => (
        { ...one, help: helps[one.help] ?? one.help, fields: all(one.fields) }
      ));
      return { ...field, ...said, variants };
    }
    case "choice": return { ...field, ...said, meanings: options };
    default: return { ...field, ...said };
  }
}
