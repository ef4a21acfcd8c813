import { behaviour } from './agent-session/behaviour.ts'
import { example } from './agent-session/example.ts'
import { methods } from './agent-session/methods.ts'
import { loop } from './agent-session/loop.ts'
import { noBehaviour } from './agent-session/no-behaviour.ts'
import { outline } from './agent-session/outline.ts'
import type { Manifest } from './requirement.ts'

const requirements = [...loop, ...methods, ...behaviour, ...example] as const

export type AgentSessionId = (typeof requirements)[number]['id']

/** Everything that agent-session.md states. */
export const agentSession: Manifest = { document: 'agent-session', requirements, outline, noBehaviour }
