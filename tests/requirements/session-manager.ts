import type { Manifest } from './requirement.ts'
import { behaviour } from './session-manager/behaviour.ts'
import { examples } from './session-manager/examples.ts'
import { format } from './session-manager/format.ts'
import { methods } from './session-manager/methods.ts'
import { noBehaviour } from './session-manager/no-behaviour.ts'
import { outline } from './session-manager/outline.ts'

const requirements = [...format, ...methods, ...behaviour, ...examples] as const

export type SessionManagerId = (typeof requirements)[number]['id']

/** Everything that session-manager.md states. */
export const sessionManager: Manifest = { document: 'session-manager', requirements, outline, noBehaviour }
