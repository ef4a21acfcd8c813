export { systemClock, type Clock } from './clock.ts'
export type { Connect, Socket } from './conversation.ts'
export { readFrame, type Incoming } from './conversation.ts'
export { indexedDbStorage, type IndexedDb } from './indexed-db-storage.ts'
export { isQuestion } from './state-values.ts'
export { readOlder, type OlderEntries } from './replica.ts'
export { ProblemError } from './problem-error.ts'
export {
  beginPairingSchema,
  callerSchema,
  createTokenSchema,
  pairedSchema,
  pairingBegunSchema,
  pairSchema,
  roles,
  signInSchema,
  tokenCreatedSchema,
  tokenInfoSchema,
  tokenListSchema,
  type Role,
  type TokenInfo,
} from './protocol/access.ts'
export {
  checkCommand,
  operationNames,
  operations,
  type Arguments,
  type Command,
  type CommandCheck,
  type Operation,
} from './protocol/command.ts'
export {
  ackSchema,
  clientFrameSchema,
  closeCodes,
  cursorSchema,
  limits,
  subprotocol,
  type Ack,
  type Attached,
  type AttachRequest,
  type ClientFrame,
  type Cursor,
  type ServerFrame,
  type SnapshotReason,
  type TextFrame,
} from './protocol/frames.ts'
export { payloadToWire, type PayloadType } from './protocol/wire-snapshot.ts'
export { permissionSchema } from './protocol/state-values.ts'
export { problemSchema, type Problem } from './protocol/frames.ts'
export {
  acceptedSchema,
  cancelSchema,
  compactSchema,
  createSessionSchema,
  deleteSessionQuerySchema,
  erasedSessionSchema,
  eventPageSchema,
  eventQuerySchema,
  eventSchema,
  forkSchema,
  healthSchema,
  imageStoredSchema,
  modelListSchema,
  modelReferenceSchema,
  modelSchema,
  patchSessionSchema,
  permissionAnsweredSchema,
  permissionAnswerSchema,
  permissionListSchema,
  promptResultSchema,
  promptSchema,
  queueAddedSchema,
  queueAddSchema,
  queuedMessageSchema,
  queueListSchema,
  queuePatchSchema,
  resumeSchema,
  sessionFeedSchema,
  sessionInfoSchema,
  sessionPageSchema,
  sessionQuerySchema,
  sessionStatusSchema,
  type ErasedSession,
  type EventPage,
  type ImageStored,
  type ModelList,
  type PermissionList,
  type PromptResult,
  type QueueAdded,
  type QueuedMessageBody,
  type QueueList,
  type SessionFeedEvent,
  type SessionSummary,
  type SessionSummaryPage,
} from './protocol/rest.ts'
export {
  comparisonQuerySchema,
  comparisonSchema,
  contextQuerySchema,
  contextSchema,
  entryRequestSchema,
  movedSessionSchema,
  playbackTypeSchema,
  playerPageSchema,
  playerQuerySchema,
  searchQuerySchema,
  searchResultSchema,
  sessionDetailsSchema,
  sessionPlaceSchema,
  streamQuerySchema,
  treeNodeSchema,
  treeQuerySchema,
  treeWindowSchema,
  type SessionDetails,
  type TreeNodeSummary,
} from './protocol/session-views.ts'
export { stateKeys, stateValueSchemas, type StateKey, type WireStateValues } from './protocol/state-values.ts'
export {
  agentListSchema,
  fileListSchema,
  fileQuerySchema,
  folderListSchema,
  folderQuerySchema,
  readinessSchema,
  settingListSchema,
  settingsQuerySchema,
  slashCommandListSchema,
} from './protocol/surroundings.ts'
export { snapshotFromWire, snapshotToWire, type WireFold, type WireSnapshot } from './protocol/wire-snapshot.ts'
export { RemoteSession, type RemoteSessionOptions } from './remote-session.ts'
export { RemoteSessions, type RemoteSessionsOptions } from './remote-sessions.ts'
export { Replica } from './replica.ts'
export { ReplicaSession } from './replica-session.ts'
export { RestClient, type ChangeOptions, type ServerAddress } from './rest-client.ts'
export { SessionCommands } from './session-commands.ts'
export type {
  AskOptions,
  Reply,
  ReplyEvent,
  RequestAnswer,
  Choice,
  ClosedReason,
  ConnectionStatus,
  MessageOptions,
  NavigateOptions,
  PresenceNews,
  PromptCommandOptions,
  QueueNotice,
  QueueOperation,
  RunOptions,
  SessionChange,
  SessionHandle,
} from './session-handle.ts'
export {
  readStateValue,
  type ListedMessage,
  type OpenQuestion,
  type PresentClient,
  type StateValues,
  type WaitingFor,
} from './state-values.ts'
export { memoryStorage, type CommandStorage, type SentCommand } from './unacknowledged.ts'
export type { WakeUps } from './reconnect.ts'
