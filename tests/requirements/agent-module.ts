import { agent } from './agent-module/agent.ts'
import { examples } from './agent-module/examples.ts'
import { messages } from './agent-module/messages.ts'
import { prompt } from './agent-module/prompt.ts'
import { sessions } from './agent-module/sessions.ts'
import { streaming } from './agent-module/streaming.ts'
import { withoutBehavior } from './agent-module/without-behavior.ts'
import type { Manifest } from './requirement.ts'

const requirements = [...agent, ...messages, ...sessions, ...streaming, ...prompt, ...examples] as const

export type AgentModuleId = (typeof requirements)[number]['id']

/** Everything that agent-module.md states. */
export const agentModule: Manifest = { document: 'agent-module', requirements, withoutBehavior }
