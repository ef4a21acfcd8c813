import type { Manifest } from './requirement.ts'
import { architecture } from './session-agent-refactor/architecture.ts'
import { scripted } from './session-agent-refactor/scripted.ts'
import { steps } from './session-agent-refactor/steps.ts'
import { withoutBehavior } from './session-agent-refactor/without-behavior.ts'

const requirements = [...architecture, ...steps, ...scripted] as const

export type SessionAgentRefactorId = (typeof requirements)[number]['id']

/** Everything that session-agent-refactor.md states. */
export const sessionAgentRefactor: Manifest = {
  document: 'session-agent-refactor',
  requirements,
  withoutBehavior,
}
