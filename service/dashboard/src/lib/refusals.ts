import { i18n } from "@lingui/core";

import { retried } from "./load";

const inChinese = () => import("../locales/zh-CN.problems");

/** Problem details in the language that was chosen, whose words are loaded now; English is better than none. */
export function inLanguage(body: unknown): unknown {
  return i18n.locale === "zh-CN" ? retried(inChinese).then(({ inWords }) => inWords(body), () => body) : body;
}
