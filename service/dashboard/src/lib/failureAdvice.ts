import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

/** What to do about a failure, by its cause; those that name a file or a module are left to the service. */
const ADVICE: Readonly<Record<string, string>> = {
  "nccl-timeout": t`a collective of NCCL got no answer in time: another rank hangs or was lost, or the link between GPUs or nodes broke; all ranks must call the same collectives in the same order`,
  "out-of-memory": t`the GPU's memory was too small: take a smaller \`batch_size\` (and \`accumulate\`), mixed precision, activation checkpointing, or a strategy that shards the model (\`fsdp\`)`,
  "disk-limit": t`write less, remove what is no longer needed, or ask the administrator for more (TORCHYARD_DISK_LIMIT, TORCHYARD_USER_DISK_LIMIT)`,
  "process-limit": t`start fewer at a time, or ask the administrator for more (TORCHYARD_PROCESS_LIMIT)`,
  "memory-limit": t`ask for more (\`resources.memory\`), or lower \`num_workers\` and what each of them holds`,
  "shared-memory": t`the shared memory is full (/dev/shm) through which DataLoader's workers hand batches over: lower \`num_workers\` or the batch size, or have the administrator enlarge it (in a container: \`--shm-size\`)`,
  "not-finite": t`the loss is no finite number any more: lower the learning rate, clip gradients, warm up, take bf16 instead of fp16, and look for bad samples in the data`,
  "lost-rank": t`it waited in vain for another rank, which hangs, failed or was killed: that rank's log says more`,
  "single-sample": t`batch normalisation got a single sample, as an epoch's last batch may have: leave that out with \`drop_last\`, or change the batch size`,
  "driver-mismatch": t`this build of torch does not fit the node's GPU or driver: install one for its CUDA version, or point \`python:\` to an environment that has it`,
  "disk-full": t`a disk is full: make room on the node, or write elsewhere`,
  killed: t`often the kernel's out-of-memory killer: ask for main memory (\`resources.memory\`), or lower \`num_workers\``,
  crash: t`a crash in native code`,
  lost: t`the node, or the process that guarded the attempt, was lost`,
  "time-limit": t`it ran into its time limit: give a longer \`time_limit\`, or rerun it from its newest checkpoint`,
  idle: t`its devices did nothing for as long as its \`idle_limit\`: see what it waits for, or give a longer \`idle_limit\``,
  hung: t`it made no step any more: \`yard stacks\` shows what its ranks waited for; \`hang:\` says when a run counts as hanging`,
};

/** What to do about a failure in the chosen language; null in English, and where that is not known. */
export function failureAdvice(cause: string, locale = i18n.locale): string | null {
  return locale === "en" || !Object.hasOwn(ADVICE, cause) ? null : ADVICE[cause] ?? null;
}
