import type { components } from "./schema";

type Schemas = components["schemas"];

export type Job = Schemas["Job"];
export type Attempt = Schemas["Attempt"];
export type Event = Schemas["Event"];
export type Series = Schemas["Series"];
export type Metrics = Schemas["Metrics"];
export type LogStream = Schemas["LogStream"];
export type Checkpoint = Schemas["Checkpoint"];
export type Output = Schemas["Output"];
export type Node = Schemas["Node"];
export type NodeDevice = Schemas["NodeDevice"];
export type Why = Schemas["Why"];
export type QueueEntry = Schemas["QueueEntry"];
export type Settings = Schemas["Settings"];
