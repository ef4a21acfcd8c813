/** Views of a session: the context, the transcript, the tree and playback. */
export { buildContext, type ContextInput, type ReasoningPolicy } from './view/context.ts'
export { chooseCutPoint, findCutPoints, type CutChoice, type CutKind, type CutPoint } from './view/cut-points.ts'
export type { PlaybackEvent, PlaybackEventOf, PlaybackEventType } from './view/event.ts'
export { Player, type PlayerClock, type PlayerPosition, type PlayOptions } from './view/player.ts'
export type { SessionSnapshot, SnapshotOptions } from './store/snapshot.ts'
export {
  foldOfTranscript,
  emptyTranscript,
  reduceTranscript,
  type PermissionRequest,
  type SnapshotFold,
  type SnapshotInput,
  type Transcript,
  type TranscriptDamage,
  type TranscriptError,
  type TranscriptInput,
  type TranscriptRun,
} from './view/transcript.ts'
export type {
  AssistantItem,
  AssistantPart,
  BashItem,
  BranchSummaryItem,
  CompactionItem,
  CustomItem,
  GapItem,
  ModelItem,
  SystemItem,
  ThinkingLevelItem,
  ToolCallPart,
  ToolCallResult,
  ToolResultItem,
  TranscriptItem,
  UserItem,
} from './view/transcript-items.ts'
export type { InFlightItem, InFlightPart, LiveKind, LiveText } from './view/transcript-live.ts'
export type { TranscriptPath } from './view/transcript-path.ts'
export type { PersistentList } from './util/persistent-list.ts'
export type { TreeNode } from './view/tree-view.ts'
export type { PersistentMap } from './util/persistent-map.ts'
export type { EventOrigin, PermissionOutcome, PlaybackEventDetail } from './view/event.ts'
export type { TranscriptNode } from './view/transcript-path.ts'
export type { TranscriptTree } from './view/transcript-tree.ts'
export type { CheckRecord, RestoreRecord, SnapshotRecord } from './line/record.ts'
