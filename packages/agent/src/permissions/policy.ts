import { exactPath } from './paths/path-pattern.ts'
import { realPath } from './paths/real-path.ts'
import type { PermissionMode } from './modes.ts'
import type { Rule, RuleLayers } from './rules.ts'

/** What a gate judges by. */
export interface Policy {
  readonly mode: PermissionMode
  readonly rules: RuleLayers
  /** The working folder, absolute. */
  readonly cwd: string
  readonly home: string
  /** Further folders in which mode `accept-edits` lets files be written. */
  readonly folders?: readonly string[]
}

export type Judgement =
  | { effect: 'allow' }
  /** The grant is what it would take for this not to be asked again; absent where it always is. */
  | { effect: 'ask'; reason: string; grant?: readonly Rule[] }
  | { effect: 'deny'; reason: string }

export const allowed: Judgement = { effect: 'allow' }

/** Deny, else ask, else allow. What is asked for several reasons is granted for all of them or not at all. */
export function worst(judgements: readonly Judgement[]): Judgement {
  const denied = judgements.find(({ effect }) => effect === 'deny')
  if (denied) return denied
  const asked = judgements.filter((each) => each.effect === 'ask')
  if (asked.length === 0) return allowed
  const reason = [...new Set(asked.map((each) => each.reason))].join('\n')
  const grants = asked.flatMap(({ grant }) => (grant ? [grant] : []))
  return { effect: 'ask', reason, ...(grants.length === asked.length && { grant: grants.flat() }) }
}

/** The folders in which files may be written in mode `accept-edits`, where they really are. */
export function editableFolders({ cwd, folders = [] }: Policy): ReturnType<typeof exactPath>[] {
  return [cwd, ...folders].map((folder) => exactPath(realPath(folder)))
}
