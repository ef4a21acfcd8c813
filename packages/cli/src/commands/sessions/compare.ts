import { compareSession } from '@tapetree/agent/workspace'
import { SessionError } from '@tapetree/session'
import { flag, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { printJson, stylesFor, write, type Io } from '../../command-line/io.ts'
import { findSession } from '../../host/find-session.ts'
import { placesOf } from '../../host/places.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { paged } from '../../sessions/paged.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { comparisonLines } from '../../text/comparison-lines.ts'
import { harmless } from '../../text/harmless.ts'
import { snakeNames } from '../../text/json-text.ts'

/** Compares two entries of a session and the files at each. */
export async function runSessionsCompare(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last', leftReference = '', rightReference] = invocation.positionals
  using progress = new Progress(io.stderr, 'Comparing')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    await using session = await store.open(id, { readOnly: true })
    const left = await findEntry(session, leftReference)
    const right = rightReference === undefined ? session.leafId : await findEntry(session, rightReference)
    if (right === null) throw new SessionError('entry-not-found', `Session ${id} has no entries yet.`)
    const folder = session.header?.cwd
    const diff = flag(invocation, 'diff')
    const files = folder !== undefined && {
      files: { folder, storesFolder: placesOf(io).workspaces, ...(diff && { diff: {} }) },
    }
    const comparison = await compareSession(session, { left, right, ...files })
    progress.close()
    if (flag(invocation, 'json')) {
      await printJson(io, { session_id: id, ...(snakeNames(comparison) as Record<string, unknown>) })
      return exitCodes.ok
    }
    await paged(io, async (output) => {
      const { bold } = stylesFor(output, io.env)
      const lines = comparisonLines(comparison, { heading: bold, width: output.columns ?? defaultWidth })
      await write(output, `${lines.join('\n')}\n`)
      for (const { patch = '', isCut } of comparison.files?.changes ?? []) {
        await write(output, diff ? `\n${harmless(patch)}${isCut ? '… the rest is too long\n' : ''}` : '')
      }
    })
    return exitCodes.ok
  })
}

const defaultWidth = 120
