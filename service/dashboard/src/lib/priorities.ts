import { t } from "@lingui/core/macro";

const LABELS: Readonly<Partial<Record<string, string>>> = {
  low: t({ message: "low", context: "priority" }),
  normal: t({ message: "normal", context: "priority" }),
  high: t({ message: "high", context: "priority" }),
  urgent: t({ message: "urgent", context: "priority" }),
};

/** What a priority class is called. */
export const priorityLabel = (priority: string) => LABELS[priority] ?? priority;
