import type { z } from 'zod'
import type {
  cancelSchema,
  compactSchema,
  rewindSchema,
  createSessionSchema,
  forkSchema,
  patchSessionSchema,
  permissionAnswerSchema,
  promptSchema,
  queueAddSchema,
  queuePatchSchema,
  resumeSchema,
  setWorkspaceSchema,
} from './protocol/requests.ts'
import type {
  acceptedSchema,
  WireImageStored,
  WirePromptResult,
  WireQueueAdded,
  WireQueuedMessageBody,
  WireQueueList,
  WireSessionFeedEvent,
  WireSessionSummary,
  WireSessionSummaryPage,
} from './protocol/rest.ts'
import type {
  beginPairingSchema,
  callerSchema,
  createTokenSchema,
  pairedSchema,
  pairingBegunSchema,
  pairPreviewedSchema,
  pairSchema,
  tokenCreatedSchema,
  tokenInfoSchema,
  tokenListSchema,
} from './protocol/access.ts'
import type {
  comparisonQuerySchema,
  comparisonSchema,
  rewoundSchema,
  contextSchema,
  entryRequestSchema,
  entryWindowQuerySchema,
  entryWindowSchema,
  movedSessionSchema,
  playerPageSchema,
  playerQuerySchema,
  searchQuerySchema,
  searchResultSchema,
  sessionDetailsSchema,
  treeQuerySchema,
  treeWindowSchema,
  usageQuerySchema,
  usageReportSchema,
} from './protocol/session-views.ts'
import type {
  agentListSchema,
  fileContentQuerySchema,
  fileContentSchema,
  fileListSchema,
  fileQuerySchema,
  folderListSchema,
  gitDiffQuerySchema,
  gitDiffSchema,
  gitStatusSchema,
  jobListSchema,
  jobOutputSchema,
  jobQuerySchema,
  jobSchema,
  patchSettingsSchema,
  pushSubscribeSchema,
  pushSubscriptionListSchema,
  pushSubscriptionSchema,
  readinessSchema,
  settingListSchema,
  slashCommandListSchema,
  toolHostListSchema,
  versionSchema,
  WireModelList,
  workspaceResultSchema,
} from './protocol/surroundings.ts'
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
  rewind: FromWire<z.input<typeof rewindSchema>>
  setWorkspace: FromWire<z.input<typeof setWorkspaceSchema>>
  resume: FromWire<z.input<typeof resumeSchema>>
  addToQueue: FromWire<z.input<typeof queueAddSchema>>
  changeQueued: FromWire<z.input<typeof queuePatchSchema>>
  answer: FromWire<z.input<typeof permissionAnswerSchema>>
  changeSettings: FromWire<z.input<typeof patchSettingsSchema>>
  createToken: FromWire<z.input<typeof createTokenSchema>>
  beginPairing: FromWire<z.input<typeof beginPairingSchema>>
  pair: FromWire<z.input<typeof pairSchema>>
  /** As `PushSubscription.toJSON()` returns it. */
  subscribePush: z.input<typeof pushSubscribeSchema>
}

type Query<Schema extends z.ZodType> = FromWire<z.output<Schema>>

/** The queries of `RestClient`, by method. */
export interface RestQueries {
  tree: Query<typeof treeQuerySchema>
  entries: Query<typeof entryWindowQuerySchema>
  compare: Query<typeof comparisonQuerySchema>
  player: Query<typeof playerQuerySchema>
  search: Query<typeof searchQuerySchema>
  usage: Query<typeof usageQuerySchema>
  files: Query<typeof fileQuerySchema>
  file: Query<typeof fileContentQuerySchema>
  gitDiff: Query<typeof gitDiffQuerySchema>
  job: Query<typeof jobQuerySchema>
}

type Result<Schema extends z.ZodType> = FromWire<z.output<Schema>>

/** The results of `RestClient` that have no name of their own, by method. */
export interface RestResults {
  sessionDetails: Result<typeof sessionDetailsSchema>
  moved: Result<typeof movedSessionSchema>
  tree: Result<typeof treeWindowSchema>
  /** The entries have the names of the log. */
  entries: Omit<Result<typeof entryWindowSchema>, 'entries'> & Pick<z.output<typeof entryWindowSchema>, 'entries'>
  compare: Result<typeof comparisonSchema>
  rewind: Result<typeof rewoundSchema>
  /** Messages and tools have the names of the log. */
  context: Result<typeof contextSchema>
  entryRequest: Result<typeof entryRequestSchema>
  player: Result<typeof playerPageSchema>
  search: Result<typeof searchResultSchema>
  usage: Result<typeof usageReportSchema>
  files: Result<typeof fileListSchema>
  file: Result<typeof fileContentSchema>
  gitStatus: Result<typeof gitStatusSchema>
  gitDiff: Result<typeof gitDiffSchema>
  jobs: Result<typeof jobListSchema>
  job: Result<typeof jobOutputSchema>
  stopJob: Result<typeof jobSchema>
  folders: Result<typeof folderListSchema>
  agents: Result<typeof agentListSchema>
  toolHosts: Result<typeof toolHostListSchema>
  setWorkspace: Result<typeof workspaceResultSchema>
  slashCommands: Result<typeof slashCommandListSchema>
  settings: Result<typeof settingListSchema>
  caller: Result<typeof callerSchema>
  tokens: Result<typeof tokenListSchema>
  token: Result<typeof tokenInfoSchema>
  createToken: Result<typeof tokenCreatedSchema>
  beginPairing: Result<typeof pairingBegunSchema>
  previewPairing: Result<typeof pairPreviewedSchema>
  pair: Result<typeof pairedSchema>
  pushSubscriptions: Result<typeof pushSubscriptionListSchema>
  subscribePush: Result<typeof pushSubscriptionSchema>
  ready: Result<typeof readinessSchema>
  version: Result<typeof versionSchema>
}
