import type { Manifest } from './requirement.ts'
import { queue } from './session-management/queue.ts'
import { recording } from './session-management/recording.ts'
import { withoutBehavior } from './session-management/without-behavior.ts'

const requirements = [...recording, ...queue] as const

export type SessionManagementId = (typeof requirements)[number]['id']

/** Everything that session-management.md states. */
export const sessionManagement: Manifest = { document: 'session-management', requirements, withoutBehavior }
