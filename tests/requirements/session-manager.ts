import type { Manifest } from './requirement.ts'
import { behavior } from './session-manager/behavior.ts'
import { examples } from './session-manager/examples.ts'
import { format } from './session-manager/format.ts'
import { methods } from './session-manager/methods.ts'
import { withoutBehavior } from './session-manager/without-behavior.ts'

const requirements = [...format, ...methods, ...behavior, ...examples] as const

export type SessionManagerId = (typeof requirements)[number]['id']

/** Everything that session-manager.md states. */
export const sessionManager: Manifest = { document: 'session-manager', requirements, withoutBehavior }
