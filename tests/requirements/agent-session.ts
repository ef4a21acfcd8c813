import { behavior } from './agent-session/behavior.ts'
import { example } from './agent-session/example.ts'
import { loop } from './agent-session/loop.ts'
import { methods } from './agent-session/methods.ts'
import { withoutBehavior } from './agent-session/without-behavior.ts'
import type { Manifest } from './requirement.ts'

const requirements = [...loop, ...methods, ...behavior, ...example] as const

export type AgentSessionId = (typeof requirements)[number]['id']

/** Everything that agent-session.md states. */
export const agentSession: Manifest = { document: 'agent-session', requirements, withoutBehavior }
