import type { z } from 'zod'
import type {
  acceptedSchema,
  cancelSchema,
  compactSchema,
  createSessionSchema,
  forkSchema,
  patchSessionSchema,
  permissionAnswerSchema,
  promptSchema,
  queueAddSchema,
  queuePatchSchema,
  resumeSchema,
  WireImageStored,
  WireModelList,
  WirePromptResult,
  WireQueueAdded,
  WireQueuedMessageBody,
  WireQueueList,
  WireSessionFeedEvent,
  WireSessionSummary,
  WireSessionSummaryPage,
} from './protocol/rest.ts'
import type { OpenQuestion } from './state-values.ts'
import type { FromWire } from './wire-names.ts'

// Results of `RestClient` and of commands.
export type SessionSummary = FromWire<WireSessionSummary>
export type SessionSummaryPage = FromWire<WireSessionSummaryPage>
export type SessionFeedEvent = FromWire<WireSessionFeedEvent>
export type PromptResult = FromWire<WirePromptResult>
export type Accepted = FromWire<z.infer<typeof acceptedSchema>>
export type QueuedMessageBody = FromWire<WireQueuedMessageBody>
export type QueueList = FromWire<WireQueueList>
export type QueueAdded = FromWire<WireQueueAdded>
export type ImageStored = FromWire<WireImageStored>
export type ModelList = FromWire<WireModelList>
export interface PermissionList {
  permissions: OpenQuestion[]
}

/** The bodies that `RestClient` sends, by method. */
export interface RestBodies {
  createSession: FromWire<z.input<typeof createSessionSchema>>
  patchSession: FromWire<z.input<typeof patchSessionSchema>>
  fork: FromWire<z.input<typeof forkSchema>>
  prompt: FromWire<z.input<typeof promptSchema>>
  abort: FromWire<z.input<typeof cancelSchema>>
  compact: FromWire<z.input<typeof compactSchema>>
  resume: FromWire<z.input<typeof resumeSchema>>
  addToQueue: FromWire<z.input<typeof queueAddSchema>>
  changeQueued: FromWire<z.input<typeof queuePatchSchema>>
  answer: FromWire<z.input<typeof permissionAnswerSchema>>
}
