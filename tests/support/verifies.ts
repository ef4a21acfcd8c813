import { expect, test } from 'vitest'
import type { AgentModuleId } from '../requirements/agent-module.ts'
import type { AgentSessionId } from '../requirements/agent-session.ts'
import type { SessionAgentRefactorId } from '../requirements/session-agent-refactor.ts'
import type { SessionManagementId } from '../requirements/session-management.ts'
import type { SessionManagerId } from '../requirements/session-manager.ts'

type Id = AgentModuleId | AgentSessionId | SessionAgentRefactorId | SessionManagementId | SessionManagerId

/** At most three: a scenario that proves more proves nothing in particular. */
type Ids = [Id] | [Id, Id] | [Id, Id, Id]

/**
 * A scenario that proves requirements. `npm run requirements` reads the ids from the text of the file, so they are written out
 * in the call.
 */
export function verifies(ids: Ids, sentence: string, body: () => Promise<void> | void): void {
  test(`${sentence} [${ids.join(', ')}]`, async () => {
    expect.hasAssertions()
    await body()
  })
}
