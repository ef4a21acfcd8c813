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
