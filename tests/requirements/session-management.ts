import type { Manifest } from './requirement.ts'
import { noBehaviour } from './session-management/no-behaviour.ts'
import { outline } from './session-management/outline.ts'
import { queue } from './session-management/queue.ts'
import { recording } from './session-management/recording.ts'

const requirements = [...recording, ...queue] as const

export type SessionManagementId = (typeof requirements)[number]['id']

/** Everything that session-management.md states. */
export const sessionManagement: Manifest = { document: 'session-management', requirements, outline, noBehaviour }
