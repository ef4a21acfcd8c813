/** What a store of your own implements and uses. */
export type { LogLine } from './log/log-lines.ts'
export type {
  AbandonedLog,
  AbandonedOptions,
  AppendOptions,
  AppendResult,
  CheckpointPieces,
  Claim,
  ClaimOptions,
  DerivedData,
  LinePosition,
  LogStore,
  ReadableLog,
  StoredLine,
  WritableLog,
} from './log/log-store.ts'
export type { QueuedMessage, QueueFile } from './state/inbox.ts'
export type { Redaction, AppendContext, DraftInContext, StorageStatus } from './log/session-writer.ts'
export type { BranchOptions } from './store/session.ts'
export { MemoryLogStore } from './stores/memory/memory-store.ts'
export { textOfLine } from './line/message-text.ts'
export { pageOf } from './stores/list-page.ts'
export { readSessionInfo } from './stores/log-info.ts'
export { NewestHits } from './stores/search-hits.ts'
export { searchLog } from './stores/search-log.ts'
export type { LineIdentity } from './line/codec.ts'
export type { IsVisible } from './log/restricted-logs.ts'
export type { OpenedLog } from './store/session-store.ts'
export type { HeaderOptions } from './store/session-maker.ts'
export type { HitPosition, TextRange } from './state/session-info.ts'
