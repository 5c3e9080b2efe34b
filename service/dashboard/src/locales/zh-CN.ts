import type { Messages } from "@lingui/core";

const catalogs = import.meta.glob<{ messages: Messages }>("./zh-CN/*.po", { eager: true });

/** All texts in Simplified Chinese, by their ids. */
export const messages: Messages = Object.fromEntries(
  Object.values(catalogs).flatMap((catalog) => Object.entries(catalog.messages)),
);
