import type { Job } from "../api/types";
import { listed, setting } from "./setting";

/** What a person may change of a job, as it is typed. */
export interface Texts {
  name: string;
  priority: Job["priority"];
  tags: string;
  /** Empty: none. */
  timeLimit: string;
}

/** What `PATCH /jobs/{id}` takes. */
export interface Edits {
  name?: string;
  priority?: Job["priority"];
  tags?: string[];
  time_limit?: string | null;
}

type Edited = Pick<Job, "name" | "priority" | "tags" | "spec">;

/** A job's fields as they stand in a form. */
export function textsOf({ name, priority, tags, spec }: Edited): Texts {
  const limit = spec.time_limit as number | null | undefined;
  return { name, priority, tags: tags.join(", "), timeLimit: limit == null ? "" : setting(limit) };
}

/** The fields whose text is another one than when the form was opened; the others stay as they are by now. */
export function editsBetween(before: Texts, texts: Texts): Edits {
  const [name, timeLimit] = [texts.name.trim(), texts.timeLimit.trim()];
  return {
    ...(name !== before.name && { name }),
    ...(texts.priority !== before.priority && { priority: texts.priority }),
    ...(texts.tags !== before.tags && { tags: listed(texts.tags) }),
    ...(timeLimit !== before.timeLimit && { time_limit: timeLimit === "" ? null : timeLimit }),
  };
}

/** What a person sees in the form, or that decides what it takes, and that is not the same of two versions of a job. */
export function changedFields(before: Edited & Pick<Job, "state">, after: Edited & Pick<Job, "state">): ("state" | keyof Texts)[] {
  const [then, now] = [textsOf(before), textsOf(after)];
  const texts = (["name", "priority", "tags", "timeLimit"] as const).filter((field) => then[field] !== now[field]);
  return before.state === after.state ? texts : ["state", ...texts];
}
