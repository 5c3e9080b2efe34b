import { i18n } from "./i18n";

/** A kind of format of `Intl`. */
type Kind<Options, Format> = new (locales: string | string[], options: Options) => Format;

const formats = new Map<string, unknown>();

/** A format in the language of the page. They are slow to make, and a list writes some in every row. */
export function formatOf<Options, Format>(kind: Kind<Options, Format>, options: Options): Format {
  const key = `${kind.name} ${JSON.stringify(options)}`;
  const format = formats.get(key) as Format | undefined ?? new kind(i18n.locales ?? i18n.locale, options);
  formats.set(key, format);
  return format;
}
