import { exactPath } from './paths/path-pattern.ts'
import { realPath } from './paths/real-path.ts'
import type { PermissionMode } from './modes.ts'
import type { Rule, RuleLayers } from './rules.ts'

/** The policy of a gate. */
export interface Policy {
  readonly mode: PermissionMode
  readonly rules: RuleLayers
  /** The working folder, absolute. */
  readonly cwd: string
  readonly home: string
  /** Additional folders in which mode `accept-edits` may write. */
  readonly folders?: readonly string[]
}

export type Judgement =
  | { effect: 'allow' }
  /** The grant prevents further requests for this call. Absent if the call always requires a request. */
  | { effect: 'ask'; reason: string; grant?: readonly Rule[] }
  | { effect: 'deny'; reason: string }

export const allowed: Judgement = { effect: 'allow' }

/**
 * The strictest judgement: deny, then ask, then allow. If there are several reasons to ask, the grant covers all of
 * them or is absent.
 */
export function worst(judgements: readonly Judgement[]): Judgement {
  const denied = judgements.find(({ effect }) => effect === 'deny')
  if (denied) return denied
  const asked = judgements.filter((each) => each.effect === 'ask')
  if (asked.length === 0) return allowed
  const reason = [...new Set(asked.map((each) => each.reason))].join('\n')
  const grants = asked.flatMap(({ grant }) => (grant ? [grant] : []))
  return { effect: 'ask', reason, ...(grants.length === asked.length && { grant: grants.flat() }) }
}

/** The real paths of the folders in which mode `accept-edits` may write. */
export function editableFolders({ cwd, folders = [] }: Policy): ReturnType<typeof exactPath>[] {
  return [cwd, ...folders].map((folder) => exactPath(realPath(folder)))
}
