import { expect, test } from 'vitest'
import type { SessionManagerId } from '../requirements/session-manager.ts'

type Id = SessionManagerId

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
