import type { FileChange, FileVersion } from './file-versions.ts'

/** Files that changed between two snapshots, and who changed them. */
export interface ChangedFiles {
  by: 'agent' | 'outside' | 'job'
  paths: Iterable<string>
}

export type ConflictChoice = 'keep' | 'take' | 'merge'

/** What happens to one path. `from` is the file as it is now; a missing version means that there is no file. */
export interface PlannedFile {
  path: string
  from?: FileVersion
  to?: FileVersion
  action: 'restore' | 'keep' | 'conflict'
}

export interface RestorePlan {
  /** Only the agent changed these: they go to their target. */
  restored: PlannedFile[]
  /** Only others changed these: they stay. */
  kept: PlannedFile[]
  /** The agent and others changed these: the user has to choose. */
  conflicts: PlannedFile[]
}

/**
 * Decides for each path that differs between now and the target. A background job is not told apart from the user: what
 * changed while one ran may be either's.
 */
export function planRestore(changes: readonly FileChange[], since: readonly ChangedFiles[]): RestorePlan {
  const byAgent = new Set<string>()
  const byOthers = new Set<string>()
  for (const { by, paths } of since) for (const path of paths) (by === 'agent' ? byAgent : byOthers).add(path)
  const plan: RestorePlan = { restored: [], kept: [], conflicts: [] }
  for (const change of changes) {
    const isAgents = byAgent.has(change.path)
    const isOthers = byOthers.has(change.path)
    // A path without a recorded change counts as a conflict.
    if (isAgents && !isOthers) plan.restored.push({ ...change, action: 'restore' })
    else if (isOthers && !isAgents) plan.kept.push({ ...change, action: 'keep' })
    else plan.conflicts.push({ ...change, action: 'conflict' })
  }
  return plan
}
