export { systemClock, type Clock } from './clock.ts'
export type { Connect, Socket } from './connection.ts'
export { indexedDbStorage, type IndexedDb } from './indexed-db-storage.ts'
export { isQuestion } from './state-values.ts'
export { ProblemError } from './problem-error.ts'
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
export type { Problem } from './protocol/frames.ts'
export type { EventPage } from './protocol/rest.ts'
export type {
  Accepted,
  ImageStored,
  ModelList,
  PermissionList,
  PromptResult,
  QueueAdded,
  QueuedMessageBody,
  QueueList,
  RestBodies,
  SessionFeedEvent,
  SessionSummary,
  SessionSummaryPage,
} from './rest-values.ts'
export type { FromWire } from './wire-names.ts'
