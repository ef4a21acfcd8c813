/** Files and changes of a working folder, for servers and screens. They follow the rules of the tools. */
export { fileKindOf, type FileKind } from './tools/files/file-kind.ts'
export {
  gitDiff,
  gitStatus,
  GitProblem,
  type GitChange,
  type GitDiff,
  type GitDiffScope,
  type GitFile,
  type GitWorkspace,
  type GitStatus,
} from './workspace/workspace-git.ts'
export { readWorkspaceFile, WorkspaceProblem, type FilePart, type WorkspaceFile } from './workspace/workspace-file.ts'
export type { Encoding } from './tools/files/file-kind.ts'
export {
  RestoreProblem,
  WorkspaceSnapshots,
  type CallToRecord,
  type FileRecorder,
  type FinishedRestore,
  type PreparedRestore,
  type SnapshotState,
  type WorkspaceSnapshotsOptions,
} from './workspace/workspace-snapshots.ts'
export { compareSession, type CompareOptions } from './workspace/compare-files.ts'
export type { RestoreResult } from './workspace/apply-restore.ts'
export type { ConflictChoice, PlannedFile, RestorePlan } from './workspace/plan-restore.ts'
export {
  SnapshotStore,
  type Snapshot,
  type SnapshotStoreOptions,
  type TakeOptions,
} from './workspace/snapshot-store.ts'
export { SnapshotsOff } from './workspace/shadow-git.ts'
export { FileVersions, type FileChange, type FileVersion } from './workspace/file-versions.ts'
export {
  collectSnapshots,
  eraseSnapshots,
  isSnapshotStoreWhole,
  lastRetention,
  listSnapshotStores,
  repairSnapshotStore,
  retainSnapshots,
  type CollectedStore,
  type CollectOptions,
  type SnapshotLimits,
  type SnapshotStoreInfo,
} from './workspace/maintain-stores.ts'
export type { LeftOutFile, LeftOutReason } from './workspace/scan-files.ts'
export {
  resumeRewind,
  rewind,
  type RewindOptions,
  type RewindOutcome,
  type RewindPart,
  type RewindPlace,
  type RewoundFile,
  type RewoundFiles,
} from './agent/rewind.ts'
