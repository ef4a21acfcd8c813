import { exactPath } from './paths/path-pattern.ts'
import { realPath } from './paths/real-path.ts'
import type { Deletion } from './deleted-paths.ts'
import type { PermissionMode } from './modes.ts'
import type { Rule, RuleLayers } from './rules.ts'
import type { BoxKind } from '../tools/tool.ts'

/** The policy of a gate. */
export interface Policy {
  readonly mode: PermissionMode
  readonly rules: RuleLayers
  /** The working folder, absolute. */
  readonly cwd: string
  readonly home: string
  /** Additional folders in which modes `accept-edits` and `sandboxed` may write. */
  readonly folders?: readonly string[]
  /** Whether commands can run in a sandbox. Without one, mode `sandboxed` is like `ask`. */
  readonly hasSandbox?: boolean
}

/** `box`: the sandbox in which an allowed command must run. Absent: it runs outside, or it is not a command. */
export type Judgement =
  /** `deletes`: the gate asks if no snapshot holds these files. */
  | { effect: 'allow'; box?: BoxKind; deletes?: readonly Deletion[] }
  /** The grant prevents further requests for this call. Absent if the call always requires a request. */
  | { effect: 'ask'; reason: string; grant?: readonly Rule[]; box?: BoxKind }
  | { effect: 'deny'; reason: string }

export const allowed = { effect: 'allow' } as const satisfies Judgement

/** Whether the sandbox, not the judgement of a command, is the boundary. */
export function isBoxed({ mode, hasSandbox = false }: Policy): boolean {
  return mode === 'sandboxed' && hasSandbox
}

/**
 * The strictest judgement: deny, then ask, then allow. If there are several reasons to ask, the grant covers all of
 * them or is absent.
 */
export function worst(judgements: readonly Judgement[]): Judgement {
  const denied = judgements.find(({ effect }) => effect === 'deny')
  if (denied) return denied
  const asked = judgements.filter((each) => each.effect === 'ask')
  if (asked.length === 0) {
    return judgements.find((each) => each.effect === 'allow' && each.box !== undefined) ?? allowed
  }
  const reason = [...new Set(asked.map((each) => each.reason))].join('\n')
  const grants = asked.flatMap(({ grant }) => (grant ? [grant] : []))
  // What one of the reasons needs outside of the sandbox, the whole call gets.
  const isInside = asked.every(({ box }) => box !== undefined)
  return {
    effect: 'ask',
    reason,
    ...(grants.length === asked.length && { grant: grants.flat() }),
    ...(isInside && { box: 'writable' }),
  }
}

/** The real paths of the folders in which modes `accept-edits` and `sandboxed` may write. */
export function editableFolders({ cwd, folders = [] }: Policy): ReturnType<typeof exactPath>[] {
  return [cwd, ...folders].map((folder) => exactPath(realPath(folder)))
}
