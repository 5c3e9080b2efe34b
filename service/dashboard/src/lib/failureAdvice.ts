import { t } from "@lingui/core/macro";

import type { JobError } from "../api/types";

type Params = JobError["params"];

/** What a failure names, such as a file; where that is not known, what stands for it. */
const named = ({ subject }: Params, otherwise = t`that it names`) => (typeof subject === "string" ? subject : otherwise);

/** A setting with braces, which stand for placeholders in a text. */
const setting = "env: {CUDA_LAUNCH_BLOCKING: '1'}";

/** What to do about a failure, by its cause. */
export const ADVICE: Readonly<Record<string, string | ((params: Params) => string)>> = {
  "nccl-timeout": t`a collective of NCCL got no answer in time: another rank hangs or was lost, or the link between GPUs or nodes broke; all ranks must call the same collectives in the same order`,
  "out-of-memory": t`the GPU's memory, or the job's share of it (\`gpu_share\`), was too small: take a smaller \`batch_size\` (and \`accumulate\`), mixed precision, activation checkpointing, or a strategy that shards the model (\`fsdp\`)`,
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
  exit: "",
  unusable: t`the attempt could not be prepared`,
  "start-limit": ({ limit }) => t`it could not be started within its \`start_limit\` of ${{ limit: String(limit) }}: give a longer one, ask for fewer or shared GPUs, or take a higher priority`,
  dependency: ({ job }) => t`job ${{ number: String(job) }}, which it waited for, has not succeeded: rerun that one, then this one with the new one's number in \`after\` (or \`after: null\`)`,
  "gpu-fault": (params) => t`the GPU failed (${{ what: named(params, t`its Xid is in the kernel's log`) }}: uncorrectable memory, a broken link, or off the bus): \`dmesg\` on the node tells more; reset the GPU, or reboot the node`,
  "host-memory": t`main memory ran out: ask for it (\`resources.memory\`), or lower \`num_workers\` and what each of them holds`,
  "gpu-trespass": t`use the GPUs of CUDA_VISIBLE_DEVICES alone, and of a shared one no more than your share; ask for more (\`resources.gpus\`, \`resources.gpu_share\`)`,
  "node-memory": t`name what it needs (\`resources.memory\`), so that it starts where so much is free, and the kernel spares it before those that name nothing`,
  "address-in-use": ({ taken }) => (taken === true
    ? t`the port that was chosen for its ranks to meet at has been taken by another program meanwhile`
    : t`the port that it listens at is in use on this box: do not fix one, take MASTER_PORT from the environment (\`init_method='env://'\`), or let the system choose (port 0)`),
  "own-processes": t`the script starts processes itself (\`mp.spawn\`), which do not find each other under torchrun: say \`launcher: python\` (\`yard run --launcher python\`), or leave \`launcher\` out`,
  "no-store": t`the ranks look for one another at an address that nobody has opened: leave MASTER_ADDR and MASTER_PORT as torchrun has set them (\`init_method='env://'\`)`,
  "no-ranks": t`the script joins a process group, and its command has started no ranks: give the script itself (\`yard run --gpus 2 -- python train.py\`), which then runs under torchrun, or have the command start torchrun`,
  "no-torch": ({ subject }) => {
    if (typeof subject !== "string") {
      return t`the job's Python has no torch, which torchrun needs: install it there, point \`python:\` to an environment that has it, or say \`launcher: python\` for a script that needs none`;
    }
    return t`${subject} has no torch, which torchrun needs: \`${subject} -m pip install torch\`, point \`python:\` to an environment that has it, or say \`launcher: python\` for a script that needs none`;
  },
  "device-assert": t`a kernel met an index or an address that does not exist, often a label outside the classes: run it once with \`${setting}\` to see which line`,
  "missing-module": (params) => t`the module ${{ name: named(params) }} is not in the job's environment: install it there, or point \`python:\` to the environment that has it`,
  "import-error": (params) => t`a module cannot be imported (${{ what: named(params, t`its traceback shows where`) }}): the environment that \`python:\` names does not fit the code`,
  "missing-file": (params) => t`the file ${{ name: named(params) }} is not on the node: give its whole path, join its folder with \`link:\`, put it into the code (what \`.gitignore\` names is not in it), or run the folder itself with \`live:\``,
  "no-input": t`a job has no standard input: give what it asks for as an argument, or in a file of the code`,
  "missing-script": (params) => t`the script ${{ name: named(params) }} is not on the node: mend its path, or put it into the code`,
  permission: (params) => t`the job's user may not use ${{ name: named(params) }}: change who may, or write below TORCHYARD_OUTPUT_DIR`,
  "code-error": t`an error in the code: the traceback shows the line`,
  "bus-error": t`often a full /dev/shm: lower \`num_workers\``,
};

/** What to do about a failure; null where that is not known. */
export function adviceOn({ cause, params }: Pick<JobError, "cause" | "params">): string | null {
  if (!Object.hasOwn(ADVICE, cause)) return null;
  const found = ADVICE[cause];
  const told = typeof found === "function" ? found(params) : found;
  return told === undefined || told === "" ? null : told;
}
