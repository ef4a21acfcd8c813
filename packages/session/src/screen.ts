/** Models for screens, each of which draws them in its own way: rows of a transcript, tool calls, diffs, comparisons, permission requests. */
export { callArgument, callOutcome, elapsedText, type CallNews, type CallOutcome } from './view/calls.ts'
export {
  compareEntries,
  summarizeEntry,
  type CheckResult,
  type ComparedFiles,
  type ComparedSide,
  type Comparison,
  type EntrySummary,
  type FileDiff,
} from './view/comparison.ts'
export { isPausing, serverText, toldDiagnostics, type ShownServer, type ToldDiagnostics } from './view/diagnostics.ts'
export {
  changedFiles,
  parseDiff,
  replacementHunk,
  sideBySide,
  type DiffFile,
  type DiffHunk,
  type DiffLine,
  type DiffPair,
  type TextRange,
} from './view/diff.ts'
export { codeLanguage, codeLanguages, codePieces, longCodeLine } from './view/highlighted-code.ts'
export type { CodeLanguage, CodePiece } from './view/highlighted-code.ts'
export { groupItems, isGroupedTool, readsText, type GroupedItems, type TranscriptRow } from './view/groups.ts'
export type { ItemList, ReadCall } from './view/groups.ts'
export { permissionText, spellInvisible, type PermissionText } from './view/permission-text.ts'
export type { Asked } from './view/permission-text.ts'
export type { CallSituation } from './view/calls.ts'
export type {
  BashStartRecord,
  BlockedRecord,
  WorkingCopyRecord,
  WorkspaceFilesRecord,
  WorkspaceRecord,
} from './line/record.ts'
